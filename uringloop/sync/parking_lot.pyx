# ParkingLot: a waitlist for primitives written in Python (Condition). Its waiters wait for a wake only, so it owns
# nothing but the line. If a waiter cannot use its wake, the next waiter gets it.
from uringloop._core.lifetime.guard cimport ur_guard_lock, ur_guard_unlock
from uringloop._core.handoff.thread_wait cimport TIMED_OUT, not_in_a_loop, sleep_in_line
from uringloop._core.handoff.timeouts cimport timeout_seconds
from uringloop._core.handoff.waitlist cimport Waiter, Waitlist, task_waiter, thread_waiter
from uringloop.sync.described cimport named


cdef class ParkingLot(Waitlist):
    """A line in which a waiter first takes its place, and waits later: in between it can release a lock."""

    def __init__(self, *, str name=None):
        self.name = name

    cdef bint try_acquire(self) noexcept:
        cdef bint waking = self.waking
        self.waking = False
        return waking

    cdef bint put_back(self) noexcept:
        """Make a wake available for the first in line. An empty line does not keep it for a later waiter."""
        self.waking = self.waiting != 0
        return self.waking

    def park(self):
        """Take a place for the current task, which then awaits it."""
        return self.append_waiter(task_waiter(self, True))

    def park_sync(self):
        """Take a place for a plain thread, which then sleeps in `wait_parked`."""
        not_in_a_loop("Condition.wait_sync()", "`await condition.wait()`")
        return self.append_waiter(thread_waiter(self, True))

    cdef object append_waiter(self, Waiter waiter):
        ur_guard_lock(&self.guard)
        self.append(waiter)
        ur_guard_unlock(&self.guard)
        return waiter

    def wait_parked(self, Waiter waiter, timeout):
        """Sleep until woken; False after `timeout` seconds. The caller checked the timeout before it took the place."""
        if waiter.line is not self or waiter.thread_lock is None:
            raise ValueError(f"{waiter!r} is not a plain thread's place in this line")
        return sleep_in_line(self, waiter, timeout_seconds(timeout)) is not TIMED_OUT

    def unpark(self, Py_ssize_t count):
        """Wake at most `count` waiters, in the order in which they came; returns how many it woke."""
        cdef Py_ssize_t woken = 0
        while woken < count and self.hand_on():
            woken += 1
        return woken

    def statistics(self):
        return named(self, {})

    def __repr__(self):
        return f"<ParkingLot waiting={self.waiting}>"
