from uringloop._core.loop.loop cimport Loop


cdef class IoRefs:
    cdef long count            # the socket's own number: its makefile() objects, and the transports that use it
    cdef long waiting          # how many operations on the socket are submitted
    cdef readonly bint closed  # the socket is closed: another file may have its number
    cdef object loop           # a weak reference to the operations' loop; if several loops wait, to the last one

    cdef int begin(self, Loop loop) except -1
    cdef int end(self) noexcept
    cdef int closes(self) except -1
    cdef int end_all(self, Loop loop, list ended) except -1


cdef IoRefs io_refs_of(object sock)
