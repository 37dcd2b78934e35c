from uringloop._core.engine.engine cimport Engine
from uringloop._core.engine.ready cimport ReadyQueue, Runnable
from uringloop._core.objects.guard cimport ur_guard


cdef class Inbox:
    cdef ur_guard guard
    # Under the guard:
    cdef ReadyQueue waiting      # what other threads handed in
    cdef int filled              # there is something; read by the loop's thread without the guard
    cdef bint closed
    cdef int asleep              # the loop is in, or about to enter, the kernel to wait; a hint without the guard
    cdef bint wake_pending       # one wake was written since it fell asleep: no second is needed
    cdef Engine engine

    cdef int push(self, Runnable node) except -1
    cdef bint try_push(self, Runnable node) noexcept
    cdef bint try_push_all(self, ReadyQueue nodes) noexcept
    cdef void wake(self) noexcept
    cdef void take(self, ReadyQueue ready) noexcept
    cdef bint fall_asleep(self) noexcept
    cdef void woke_up(self) noexcept
    cdef void close(self) noexcept
