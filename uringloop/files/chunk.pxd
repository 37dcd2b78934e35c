from uringloop._core.engine.fixed_buffer cimport FixedBuffer


cdef class Chunk:
    # Memory of a fixed size, aligned for O_DIRECT; kept alive by what the kernel may still write to it.
    cdef char *data
    cdef Py_ssize_t room


cdef class Borrowed:
    # Somebody else's bytes, for reading or (`writable`) for filling; held until this is dropped.
    cdef object owner
    cdef Py_buffer view
    cdef bint viewed
    cdef char *data
    cdef Py_ssize_t length
    cdef FixedBuffer fixed    # what it is a part of, else None

    cdef int align(self) except -1
    cdef object keeper(self)


cdef Chunk make_chunk(Py_ssize_t room)
cdef Borrowed borrow(object owner, bint writable)
cdef Borrowed borrow_while_waiting(object owner, bint writable)
cdef Borrowed borrow_fixed(object owner)
