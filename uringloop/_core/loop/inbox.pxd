from uringloop._core.engine.engine cimport Engine
from uringloop._core.engine.ready_queue cimport ReadyQueue, Runnable
from uringloop._core.lifetime.guard cimport ur_guard


cdef class Inbox:
    cdef ur_guard guard
    # Under the guard:
    cdef ReadyQueue waiting      # the work that other threads have submitted
    cdef int filled              # `waiting` is not empty; the loop's thread reads it without the guard
    cdef bint closed
    cdef int asleep              # the loop waits in the kernel, or is about to; without the guard only a hint
    cdef bint wake_pending       # a thread has woken the loop since it fell asleep: no second wake is needed
    cdef Engine engine

    cdef int push(self, Runnable node) except -1
    cdef bint try_push(self, Runnable node) noexcept
    cdef bint try_push_all(self, ReadyQueue nodes) noexcept
    cdef void wake(self) noexcept
    cdef void take(self, ReadyQueue ready) noexcept
    cdef bint fall_asleep(self) noexcept
    cdef void woke_up(self) noexcept
    cdef void close(self) noexcept
