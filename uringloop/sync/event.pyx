# Event and AutoResetEvent: a flag to wait for. They own the flag; the Waitlist wakes the waiters.
from uringloop._core.lifetime.guard cimport ur_guard_lock, ur_guard_unlock, ur_load_int, ur_store_int
from uringloop._core.handoff.ready_awaitable cimport ready_awaitable
from uringloop._core.handoff.thread_wait cimport TIMED_OUT, block, not_in_a_loop
from uringloop._core.handoff.timeouts cimport timeout_seconds
from uringloop._core.handoff.wait cimport make_wait
from uringloop._core.handoff.waitlist cimport Waitlist
from uringloop.sync.described cimport named, queued, title


cdef class Event(Waitlist):
    """asyncio.Event for tasks of any loop and plain threads: stays set until it is cleared."""

    def __init__(self, *, str name=None):
        self.name = name

    cdef bint try_acquire(self) noexcept:
        return self.flag

    cdef object start(self, object value):
        # Without the guard: if the flag is set when we read it, the caller need not wait, whatever happens next.
        if ur_load_int(&self.flag):
            return ready_awaitable(value)
        return Waitlist.start(self, value)

    cdef str wait_name(self):
        return "Event.wait"

    def set(self):
        """Set the flag, from any thread or a signal handler. All waiters wake on their own loops, with one wake a loop."""
        ur_guard_lock(&self.guard)
        ur_store_int(&self.flag, True)
        self.unlock_and_grant_all()

    def clear(self):
        """Clear the flag. Those that waited when it was set wake all the same."""
        ur_guard_lock(&self.guard)
        ur_store_int(&self.flag, False)
        ur_guard_unlock(&self.guard)

    def is_set(self):
        return ur_load_int(&self.flag) != 0

    def wait(self):
        """Await the result until the event is set; the await returns True."""
        return make_wait(self, True)

    def wait_sync(self, timeout=None):
        """Wait in a plain thread: True once set, False after `timeout` seconds."""
        timeout_seconds(timeout)
        if ur_load_int(&self.flag):
            return True
        not_in_a_loop("Event.wait_sync()", "`await event.wait()`")
        return block(self, True, timeout) is not TIMED_OUT

    def statistics(self):
        """{set, waiting: now; waits, grants, cancels, passes: since it was made}."""
        return named(self, {"set": self.is_set()})

    def __repr__(self):
        return f"<{title(self, self.name)} {'set' if self.flag else 'unset'} {queued(self)}>"


cdef class AutoResetEvent(Waitlist):
    """An event that wakes one waiter, which clears it. If it is set twice before a wait, only one wait succeeds."""

    def __init__(self, bint set=False, *, str name=None):
        self.flag = set
        self.name = name

    cdef bint try_acquire(self) noexcept:
        if not self.flag:
            return False
        self.flag = False
        return True

    cdef bint put_back(self) noexcept:
        self.flag = True
        return True

    cdef str wait_name(self):
        return "AutoResetEvent.wait"

    def set(self):
        """Wake the longest waiter, from any thread; without a waiter, the next wait returns at once."""
        self.hand_on()

    def clear(self):
        ur_guard_lock(&self.guard)
        self.flag = False
        ur_guard_unlock(&self.guard)

    def is_set(self):
        return self.flag

    def wait(self):
        """Await the result until the event is set, and clear it; the await returns True."""
        return make_wait(self, True)

    def wait_sync(self, timeout=None):
        """Wait in a plain thread: True once set, False after `timeout` seconds."""
        not_in_a_loop("AutoResetEvent.wait_sync()", "`await event.wait()`")
        return block(self, True, timeout) is not TIMED_OUT

    def statistics(self):
        """{set, waiting: now; waits, grants, cancels, passes: since it was made}."""
        return named(self, {"set": self.flag})

    def __repr__(self):
        return f"<{title(self, self.name)} {'set' if self.flag else 'unset'} {queued(self)}>"
