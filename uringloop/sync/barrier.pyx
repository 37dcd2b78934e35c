# Barrier: holds its parties back until the last one arrives, then lets all through at once. The parties that have arrived
# are the waiters in its line. The last arrival ends a round: the next party to arrive starts another, and need not
# wait until all parties of the previous one have woken.
from cpython.object cimport PyObject

from asyncio import BrokenBarrierError

from uringloop._core.lifetime.guard cimport ur_guard_lock, ur_guard_unlock
from uringloop._core.handoff.ready_awaitable cimport READY_NONE, ready_awaitable
from uringloop._core.handoff.thread_wait cimport TIMED_OUT, not_in_a_loop, sleep_in_line
from uringloop._core.handoff.timeouts cimport timeout_seconds
from uringloop._core.handoff.wait cimport make_wait
from uringloop._core.handoff.waitlist cimport WAITER_FAILED, Waiter, WaiterState, Waitlist, task_waiter, thread_waiter
from uringloop.sync.described cimport named, title

from uringloop.errors import NotInitialised


cdef class Barrier(Waitlist):
    """asyncio.Barrier for tasks of any loop and plain threads."""

    def __init__(self, parties, *, str name=None):
        if parties < 1:
            raise ValueError("parties must be >= 1")
        if parties != int(parties):
            raise ValueError(f"parties must be a whole number, not {parties!r}")
        self.parties = int(parties)
        self.name = name

    cdef str wait_name(self):
        return "Barrier.wait"

    cdef bint arrive(self, Waiter waiter, Py_ssize_t *round) except -1:
        """Put the waiter in the line. True: it is the last party, so it is not in the line; all others were granted, and
        the round is over."""
        cdef PyObject *node
        cdef Py_ssize_t number = 0
        cdef WaiterState state
        ur_guard_lock(&self.guard)
        round[0] = self.round
        if self.waiting + 1 == self.parties and self.refusal is None:
            self.round += 1
            # The parties get their numbers now and not on arrival, because some that arrived may have left again; and under
            # the guard, because a thread that times out may read its number as soon as the guard is free.
            node = self.head
            while node is not NULL:
                (<Waiter> node).value = number
                number += 1
                node = (<Waiter> node).next
            self.unlock_and_grant_all()
            return True
        state = self.enter(waiter)
        ur_guard_unlock(&self.guard)
        if state == WAITER_FAILED:
            raise BrokenBarrierError("Barrier aborted")
        return False

    cdef object start(self, object value):
        if self.parties == 0:
            raise NotInitialised
        cdef Waiter waiter = task_waiter(self, None)
        cdef Py_ssize_t round
        if self.arrive(waiter, &round):
            return ready_awaitable(self.parties - 1)
        return waiter

    def wait(self):
        """Await the result until all parties have arrived; each await returns a number, from 0 in order of arrival."""
        return make_wait(self, None)

    def wait_sync(self, timeout=None):
        """wait in a plain thread. After `timeout` seconds it breaks the barrier, as threading.Barrier does."""
        cdef double seconds
        cdef Waiter waiter
        cdef Py_ssize_t round
        not_in_a_loop("Barrier.wait_sync()", "`await barrier.wait()`")
        if self.parties == 0:
            raise NotInitialised
        seconds = timeout_seconds(timeout)
        waiter = thread_waiter(self, None)
        if self.arrive(waiter, &round):
            return self.parties - 1
        number = sleep_in_line(self, waiter, seconds)
        if number is TIMED_OUT:
            self.break_round(round)
            raise BrokenBarrierError("Barrier timed out")
        return number

    cdef int break_round(self, Py_ssize_t round) except -1:
        """A party of this round timed out: break the barrier, unless the round is over by now."""
        ur_guard_lock(&self.guard)
        if self.round == round:
            self.refusal = BrokenBarrierError
            self.unlock_and_fail_all(BrokenBarrierError)
        else:
            ur_guard_unlock(&self.guard)
        return 0

    def reset(self):
        """Start anew: all waiters get BrokenBarrierError. Takes effect at once, from any thread; may be awaited."""
        ur_guard_lock(&self.guard)
        self.round += 1
        self.refusal = None
        self.unlock_and_fail_all(BrokenBarrierError)
        return READY_NONE

    def abort(self):
        """Break the barrier: all waiters, and all that come before reset(), get BrokenBarrierError. Takes effect at once,
        from any thread; may be awaited."""
        self.close_line(BrokenBarrierError)
        return READY_NONE

    @property
    def n_waiting(self):
        return self.waiting

    @property
    def broken(self):
        return self.refusal is not None

    def statistics(self):
        """{parties, waiting: now; waits, grants, cancels, passes: since it was made}."""
        return named(self, {"parties": self.parties})

    def __aenter__(self):
        return make_wait(self, None)

    def __aexit__(self, *exc):
        return READY_NONE

    def __repr__(self):
        state = "broken" if self.refusal is not None else "filling"
        return f"<{title(self, self.name)} {state} waiting={self.waiting}/{self.parties}>"
