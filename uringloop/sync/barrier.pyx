# Barrier: lets nobody through until all parties have come, then all at once. Owns who has come, which is who
# waits in its line. A round is over with its last arrival: who comes next begins another, and need not wait
# until all of this one have woken.
from cpython.object cimport PyObject

from asyncio import BrokenBarrierError

from uringloop._core.objects.guard cimport ur_guard_lock, ur_guard_unlock
from uringloop._core.wait.finished cimport READY_NONE, ready_awaitable
from uringloop._core.wait.patience cimport timeout_seconds
from uringloop._core.wait.wait cimport make_wait
from uringloop._core.wait.waitlist cimport (
    TIMED_OUT, WAITER_FAILED, WAITER_GRANTED, WAITER_NEW, Waiter, Waitlist, deliver_all, not_in_a_loop, task_waiter,
    thread_waiter,
)

from uringloop.errors import NotInitialised


cdef class Barrier(Waitlist):
    """asyncio.Barrier for tasks of any loop and plain threads."""

    def __init__(self, parties):
        if parties < 1:
            raise ValueError("parties must be >= 1")
        if parties != int(parties):
            raise ValueError(f"parties must be a whole number, not {parties!r}")
        self.parties = int(parties)

    cdef str wait_name(self):
        return "Barrier.wait"

    cdef PyObject *arrive(self, object waiter, bint *last) noexcept:
        """In the line; or, the last to come, with all who wait taken out of it. Neither: the barrier is broken."""
        cdef PyObject *chain = NULL
        cdef PyObject *node
        cdef Py_ssize_t number = 0
        ur_guard_lock(&self.guard)
        last[0] = self.waiting + 1 == self.parties and self.refusal is None
        if last[0]:
            self.round += 1
            chain = node = self.pop_all(WAITER_GRANTED)
            # Numbered now, not on arrival: some who came may have left again. And here: a thread whose time is over looks
            # at once.
            while node is not NULL:
                (<Waiter> node).value = number
                number += 1
                node = (<Waiter> node).next
        else:
            self.append(waiter)
        ur_guard_unlock(&self.guard)
        return chain

    cdef object start(self, object value):
        if self.parties == 0:
            raise NotInitialised
        cdef Waiter waiter = task_waiter(self, None)
        cdef bint last
        cdef PyObject *chain = self.arrive(waiter, &last)
        if last:
            deliver_all(chain, None)
            return ready_awaitable(self.parties - 1)
        if waiter.state == WAITER_NEW:
            raise BrokenBarrierError("Barrier aborted")
        return waiter

    def wait(self):
        """Await it until all have come; gives each its number, from 0 in order of arrival."""
        return make_wait(self, None)

    def wait_sync(self, timeout=None):
        """The same for a plain thread. After `timeout` seconds the barrier is broken, as with threading's."""
        cdef double seconds
        cdef Waiter waiter
        cdef bint last, refused
        cdef Py_ssize_t round
        cdef PyObject *chain
        not_in_a_loop("Barrier.wait_sync()", "`await barrier.wait()`")
        if self.parties == 0:
            raise NotInitialised
        seconds = timeout_seconds(timeout)
        waiter = thread_waiter(self, None)
        chain = self.arrive(waiter, &last)
        if last:
            deliver_all(chain, None)
            return self.parties - 1
        ur_guard_lock(&self.guard)
        refused = waiter.state == WAITER_NEW
        round = self.round
        ur_guard_unlock(&self.guard)
        if refused:
            raise BrokenBarrierError("Barrier aborted")
        number = self.sleep(waiter, seconds)
        if number is TIMED_OUT:
            self.break_round(round)
            raise BrokenBarrierError("Barrier timed out")
        return number

    cdef int break_round(self, Py_ssize_t round) except -1:
        """One of it has given up. If it is over by now, another's is none of its business."""
        cdef PyObject *chain = NULL
        ur_guard_lock(&self.guard)
        if self.round == round:
            self.refusal = BrokenBarrierError
            chain = self.pop_all(WAITER_FAILED)
        ur_guard_unlock(&self.guard)
        deliver_all(chain, BrokenBarrierError)
        return 0

    def reset(self):
        """Who waits gets BrokenBarrierError; the barrier begins anew. From anywhere, at once; may be awaited."""
        cdef PyObject *chain
        ur_guard_lock(&self.guard)
        self.round += 1
        self.refusal = None
        chain = self.pop_all(WAITER_FAILED)
        ur_guard_unlock(&self.guard)
        deliver_all(chain, BrokenBarrierError)
        return READY_NONE

    def abort(self):
        """Who waits, and who comes, gets BrokenBarrierError, until reset(). From anywhere, at once; may be awaited."""
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
        return {"parties": self.parties, **self.counts()}

    def __aenter__(self):
        return make_wait(self, None)

    def __aexit__(self, *exc):
        return READY_NONE

    def __repr__(self):
        state = "broken" if self.refusal is not None else "filling"
        return f"<{type(self).__name__} {state} waiting={self.waiting}/{self.parties}>"
