from uringloop._core.engine.engine cimport Engine
from uringloop._core.engine.op cimport Op
from uringloop._core.loop.loop cimport Loop


cdef class AcceptOp(Op):
    # The loop's thread only.
    cdef Engine engine
    cdef readonly object listener    # net/servers.py's Listener, None once stopped
    cdef object late                 # once stopped: a callback for connections accepted by then; None: they are closed
    cdef int *accepted               # accepted descriptors that were not passed on yet
    cdef Py_ssize_t count
    cdef Py_ssize_t size
    cdef int error                   # the error that ended the operation, or 0
    cdef bint ended

    cdef void _store_accepted(self, int fd) noexcept
    cdef int _end(self, object loop) except -1
