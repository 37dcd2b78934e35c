from libc.stdint cimport uint8_t

from uringloop.files.turn_share cimport TurnShare


cdef class Callee:
    # The base class of objects whose methods return Calls. Only the thread of `share.loop` uses it.
    cdef TurnShare share

    cdef object begin(self, Call call)
    cdef str described(self, int kind)
    cdef int bind(self) except -1


cdef class Call:
    cdef Callee callee
    cdef object first         # the arguments
    cdef object second
    cdef object inner         # the coroutine of work that has to wait
    cdef int kind
    cdef uint8_t phase        # CoroutinePhase; waiting: for `inner`

    cdef int over(self) except -1


cdef Call make_call(Callee callee, int kind, object first, object second)

# What `begin` returns once it has set `inner`.
cdef object PENDING
