from uringloop._core.engine.fixed_buffer cimport FixedBuffer


cdef class Chunk:
    # Memory of a fixed size, aligned for O_DIRECT. An operation that may still write to it keeps it alive.
    cdef char *data
    cdef Py_ssize_t room


cdef class Borrowed:
    # A buffer of the caller's, to read from or (`writable`) to fill; held as long as this object lives.
    cdef object owner
    cdef Py_buffer view
    cdef bint viewed
    cdef char *data
    cdef Py_ssize_t length
    cdef FixedBuffer fixed    # the FixedBuffer that it is a part of, or None

    cdef int align(self) except -1
    cdef object keeper(self)


cdef Chunk make_chunk(Py_ssize_t room)
cdef Borrowed borrow(object owner, bint writable)
cdef Borrowed borrow_while_waiting(object owner, bint writable)
cdef Borrowed borrow_fixed(object owner)
