# ParkingLot: a waitlist for primitives written in Python (Condition). One can only be woken from it, so it owns
# nothing but the line. A wake that its waiter can not use goes on to the next.
from uringloop._core.lifetime.guard cimport ur_guard_lock, ur_guard_unlock
from uringloop._core.handoff.thread_wait cimport TIMED_OUT, not_in_a_loop, sleep_in_line
from uringloop._core.handoff.timeouts cimport timeout_seconds
from uringloop._core.handoff.waitlist cimport Waiter, Waitlist, task_waiter, thread_waiter


cdef class ParkingLot(Waitlist):
    """Stand in the line, do what must be done with a place in it, then wait."""

    cdef bint try_acquire(self) noexcept:
        cdef bint waking = self.waking
        self.waking = False
        return waking

    cdef bint put_back(self) noexcept:
        """A wake, for the first in line. It is not kept for a later waiter."""
        self.waking = self.waiting != 0
        return self.waking

    def park(self):
        """A place for the current task, to be awaited."""
        return self.append_waiter(task_waiter(self, True))

    def park_sync(self):
        """A place for a plain thread, to sleep in."""
        not_in_a_loop("Condition.wait_sync()", "`await condition.wait()`")
        return self.append_waiter(thread_waiter(self, True))

    cdef object append_waiter(self, Waiter waiter):
        ur_guard_lock(&self.guard)
        self.append(waiter)
        ur_guard_unlock(&self.guard)
        return waiter

    def wait_parked(self, Waiter waiter, timeout):
        """False after `timeout` seconds, which was checked before the place was taken."""
        if waiter.line is not self or waiter.thread_lock is None:
            raise ValueError(f"{waiter!r} is no place of a plain thread in this line")
        return sleep_in_line(self, waiter, timeout_seconds(timeout)) is not TIMED_OUT

    def unpark(self, Py_ssize_t count):
        """At most so many, first come first; how many were woken."""
        cdef Py_ssize_t woken = 0
        while woken < count and self.hand_on():
            woken += 1
        return woken

    def statistics(self):
        return self.counts()

    def __repr__(self):
        return f"<ParkingLot waiting={self.waiting}>"
