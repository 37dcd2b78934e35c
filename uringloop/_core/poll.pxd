from uringloop._core.engine cimport Engine
from uringloop._core.kernel cimport uint32_t
from uringloop._core.loop cimport Loop
from uringloop._core.op cimport Op


cdef class PollOp(Op):
    # The loop's thread only.
    cdef Loop loop
    cdef Engine engine
    cdef uint32_t events       # POLLIN or POLLOUT
    cdef int result
    cdef public object handle  # asyncio.Handle's look-alike to run, None once removed
    cdef public object refs    # the IoRefs of the socket that was given, or None
