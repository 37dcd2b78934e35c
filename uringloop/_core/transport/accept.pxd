from uringloop._core.engine.engine cimport Engine
from uringloop._core.engine.op cimport Op
from uringloop._core.loop.loop cimport Loop


cdef class AcceptOp(Op):
    # The loop's thread only.
    cdef Engine engine
    cdef readonly object listener    # net/servers.py's Listener, None once stopped
    cdef object late                 # once stopped: who takes what the kernel had accepted by then; None: it is closed
    cdef int *accepted               # descriptors nobody has taken yet
    cdef Py_ssize_t count
    cdef Py_ssize_t size
    cdef int error                   # why the kernel stopped, 0 if it did not say
    cdef bint ended

    cdef void _store_accepted(self, int fd) noexcept
    cdef int _end(self, object loop) except -1
