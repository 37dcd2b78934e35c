from uringloop._core.loop.loop cimport Loop


cdef class IoRefs:
    cdef long count            # what a socket has there: files made of it, transports that use it
    cdef long waiting          # operations on it that are submitted
    cdef readonly bint closed  # so is the socket: its number may be another's
    cdef object loop           # a weak reference to theirs; where several loops wait for one socket, to the last

    cdef int begin(self, Loop loop) except -1
    cdef int end(self) noexcept
    cdef int closes(self) except -1
    cdef int end_all(self, Loop loop, list ended) except -1


cdef IoRefs io_refs_of(object sock)
