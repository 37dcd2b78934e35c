# Chunk and Borrowed: the memory of file operations, our own and the caller's. They own the memory, or hold the caller's
# buffer, as long as anything refers to them, such as an operation in the kernel. They know nothing of the contents.
from cpython.buffer cimport PyBUF_SIMPLE, PyBUF_WRITABLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from cpython.memoryview cimport PyMemoryView_FromObject, PyMemoryView_GET_BUFFER
from cpython.object cimport PyObject
from libc.stdlib cimport free
from libc.string cimport memcpy

from uringloop._core.engine.fixed_buffer cimport FixedBuffer
from uringloop._core.lifetime.guard cimport ur_only_core_makes

cdef extern from "Python.h":
    bint PyMemoryView_Check(object view)
    PyObject *PyMemoryView_GET_BASE(object view)

cdef extern from "<stdlib.h>" nogil:
    int posix_memalign(void **memory, size_t alignment, size_t size)

cdef enum:
    ALIGNMENT = 4096


cdef class Chunk:
    def __dealloc__(self):
        free(self.data)


cdef class Borrowed:
    def __dealloc__(self):
        if self.viewed:
            PyBuffer_Release(&self.view)

    cdef int align(self) except -1:
        """Copy the data to memory that is aligned for O_DIRECT, unless it is aligned already."""
        cdef Chunk chunk
        if <size_t> self.data % ALIGNMENT:
            chunk = make_chunk(self.length)
            memcpy(chunk.data, self.data, self.length)
            self.owner = chunk
            self.data = chunk.data
            self.fixed = None
        return 0

    cdef object keeper(self):
        """The object that keeps the memory alive and in place: an operation in the kernel refers to it."""
        return self if self.fixed is None else self.fixed


cdef Chunk make_chunk(Py_ssize_t room):
    cdef Chunk chunk = Chunk.__new__(Chunk)
    cdef void *memory
    if posix_memalign(&memory, ALIGNMENT, <size_t> room):
        raise MemoryError
    chunk.data = <char *> memory
    chunk.room = room
    return chunk


cdef Borrowed borrow(object owner, bint writable):
    """Borrow the caller's buffer for a call that doesn't wait."""
    cdef Borrowed lent = Borrowed.__new__(Borrowed)
    if type(owner) is bytes and not writable:
        lent.owner = owner
        lent.data = PyBytes_AS_STRING(owner)
        lent.length = PyBytes_GET_SIZE(owner)
        return lent
    if isinstance(owner, str):
        raise TypeError("a bytes-like object is required, not 'str'")
    PyObject_GetBuffer(owner, &lent.view, PyBUF_WRITABLE if writable else PyBUF_SIMPLE)
    lent.viewed = True
    lent.data = <char *> lent.view.buf
    lent.length = lent.view.len
    if PyMemoryView_Check(owner) and PyMemoryView_GET_BASE(owner) is not NULL:
        base = <object> PyMemoryView_GET_BASE(owner)
        if isinstance(base, FixedBuffer):
            # Release the view, so that the caller can use it right after the call; the FixedBuffer keeps the memory.
            lent.fixed = base
            lent.viewed = False
            PyBuffer_Release(&lent.view)
    return lent


cdef Borrowed borrow_while_waiting(object owner, bint writable):
    """The same for a call that waits. The garbage collector may free such a call, and can release a memoryview but not
    a Py_buffer."""
    cdef Borrowed lent = borrow(owner, writable)
    if lent.viewed:
        lent.owner = PyMemoryView_FromObject(owner)
        lent.viewed = False
        PyBuffer_Release(&lent.view)
        lent.data = <char *> PyMemoryView_GET_BUFFER(lent.owner).buf
        lent.length = PyMemoryView_GET_BUFFER(lent.owner).len
    return lent


cdef Borrowed borrow_fixed(object owner):
    cdef Borrowed lent = borrow(owner, True)
    if lent.fixed is None:
        raise TypeError(f"a size or a buffer of a FixedBuffers is required, not '{type(owner).__name__}'")
    return lent


ur_only_core_makes(Chunk)
ur_only_core_makes(Borrowed)
