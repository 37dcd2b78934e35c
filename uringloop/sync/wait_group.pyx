# WaitGroup: counts what is unfinished, and lets tasks and threads wait until the count is zero. Owns the count.
from uringloop._core.lifetime.guard cimport ur_guard_lock, ur_guard_unlock
from uringloop._core.handoff.thread_wait cimport TIMED_OUT, block, not_in_a_loop
from uringloop._core.handoff.wait cimport make_wait
from uringloop._core.handoff.waitlist cimport Waitlist


cdef class WaitGroup(Waitlist):
    """A count that tasks of any loop and plain threads wait for."""

    cdef bint try_acquire(self) noexcept:
        return self.count == 0

    cdef str wait_name(self):
        return "Queue.join"

    cdef int add(self, Py_ssize_t more) except -1:
        ur_guard_lock(&self.guard)
        self.count += more
        ur_guard_unlock(&self.guard)
        return 0

    cdef bint drop(self) except -1:
        """Count one as finished. False: the count was zero already."""
        cdef bint counted
        ur_guard_lock(&self.guard)
        counted = self.count != 0
        self.count -= counted
        if counted and self.count == 0:
            self.unlock_and_grant_all()
        else:
            ur_guard_unlock(&self.guard)
        return counted

    def begin(self, Py_ssize_t count=1):
        self.add(count)

    def end(self):
        if not self.drop():
            raise ValueError("end() was called more often than begin() had counted")

    def wait(self):
        """Await the result until the count is zero."""
        return make_wait(self, None)

    def wait_sync(self, timeout=None):
        """Wait in a plain thread: True once the count is zero, False after `timeout` seconds."""
        not_in_a_loop("wait_sync()", "`await`")
        return block(self, None, timeout) is not TIMED_OUT

    def __repr__(self):
        return f"<WaitGroup count={self.count} waiting={self.waiting}>"
