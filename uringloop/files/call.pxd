from libc.stdint cimport uint8_t

from uringloop._core.awaitables.file_op cimport OpOwner
from uringloop._core.loop.loop cimport Loop


cdef class Callee(OpOwner):
    # What has methods that return Calls. The thread of `loop` only.
    cdef Loop loop            # the one it was last used on
    cdef long turn            # of that loop, in which `share` is what is left
    cdef int share

    cdef object begin(self, Call call)
    cdef int bind(self) except -1
    cdef bint spent(self) noexcept
    cdef void spend(self, Py_ssize_t size) noexcept


cdef class Call:
    cdef Callee callee
    cdef object first         # the arguments
    cdef object second
    cdef object inner         # the coroutine of what has to wait
    cdef int kind
    cdef uint8_t phase        # CoroutinePhase; waiting: for `inner`

    cdef int over(self) except -1


cdef Call make_call(Callee callee, int kind, object first, object second)

# What `begin` returns once it has set `inner`.
cdef object PENDING
