# LockClaims: the holder of a lock that conditions share, and the claims of tasks that released it in Condition.wait.
# asyncio's lock has no owner: any task may release it. That is not enough here. A task that waits in a Condition may be
# destroyed with its loop, and then the code around `wait` releases a lock that by now another loop's task, or a thread,
# holds. So a lock with conditions records which coroutine acquired it, and a destroyed task's release only ends its claim.
#
# A frame identifies a coroutine: the frame that acquires also releases, even if it calls `wait` through another task
# (wait_for and gather do that), and even while the collector destroys it. A claim owns a reference to that frame, which
# does not keep the coroutine alive.
#
# A task that holds the lock may also stay suspended for ever after its loop was closed. So a Loop records the locks that
# its tasks acquired (`held_locks`), and hands them on when it closes. If such a task releases the lock later, that only
# ends its claim. Apart from that, this file never touches the lock itself.
from asyncio.events import _get_running_loop as _running_loop
from asyncio.tasks import all_tasks, wait_for
from contextlib import AsyncExitStack
from types import FrameType
from weakref import ref

from cython import no_gc_clear

from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF, Py_INCREF

from uringloop._core.cpython.canaries import coroutine_frames_are_as_known, relied_on
from uringloop._core.cpython.coroutine_frames cimport (
    ur_has_ended, ur_is_destroyed, ur_is_exiting, ur_next_frame, ur_own_frame, ur_set_helpers, ur_use_frames,
)
from uringloop._core.loop.loop cimport Loop, running_loop
from uringloop._core.lifetime.guard cimport ur_guard_init, ur_guard_lock, ur_guard_unlock
from uringloop._core.handoff.waitlist cimport Waitlist

ur_set_helpers(AsyncExitStack.enter_async_context.__code__.co_filename, wait_for.__code__.co_filename)

cdef object _Frame = FrameType
cdef object _ref = ref


cdef object _weak(object what):
    """A weak reference, because a claim must not keep a dying object alive. None for None, and for an object that does not
    support weak references."""
    try:
        return None if what is None else _ref(what)
    except TypeError:
        return None


cdef bint _is_closed(object reference) except -1:
    if reference is None:
        return False
    loop = reference()
    return loop is None or loop.is_closed()


cdef bint _is_running(object reference) except -1:
    if reference is None:
        return True
    loop = reference()
    return loop is not None and loop.is_running()


cdef object _taken(PyObject *owned):
    """Convert a new reference into an object. NULL gives None."""
    if owned is NULL:
        return None
    cdef object found = <object> owned
    Py_DECREF(found)
    return found


@no_gc_clear  # the collector may clear a claim first, and then its waiter, which calls the claim's methods
cdef class Claim:
    """One task in Condition.wait(): it held the lock, and will hold it again before the code around `wait` releases it."""

    cdef bint end(self) except -1:
        """Its task holds the lock again. False: the code around `wait` has released it already, so the caller must."""
        cdef LockClaims claims = self.claims
        if claims is None or claims.waiting.pop(self.key(), None) is None:
            return False
        claims.set_holder(self.frame)
        return True

    cdef object key(self):
        return self if self.frame is None else self.frame

    def ended(self):
        """The same, for a lock that does not call `end` itself: one that overrides acquire(), or is not uringloop's."""
        return self.end()

    def was_notified(self):
        if self.claims is not None:
            self.claims.swap_notified(self, True)

    def pass_on(self):
        """Its task was notified but will not act on that: give the notification to another waiter, at most once."""
        if self.claims is not None and self.claims.swap_notified(self, False):
            self.line.hand_on()

    def give_up(self):
        """The task will not hold the lock again, but the code around `wait` is going to release it all the same."""
        self.given_up = True
        self.pass_on()

    cdef bint dead(self) except -1:
        return self.given_up or _is_closed(self.loop)

    def __repr__(self):
        return f"<Claim {'given up' if self.given_up else 'waiting'} for {self.line!r}>"


cdef class LockClaims:
    """The holder and the claims of one lock, for all its conditions."""

    def __cinit__(self):
        ur_guard_init(&self.guard)
        self.waiting = {}
        self.sweep_at = 64

    cdef object read_hold(self, PyObject **noted):
        """The holder. Sets `noted` to a new reference to the other field."""
        cdef object holder
        ur_guard_lock(&self.guard)
        holder = self.holder
        Py_INCREF(self.noted)
        noted[0] = <PyObject *> self.noted
        ur_guard_unlock(&self.guard)
        return holder

    cdef bint swap_notified(self, Claim claim, bint notified) noexcept:
        """Set whether the claim's task has a notification; returns whether it had one."""
        cdef bint before
        ur_guard_lock(&self.guard)
        before, claim.notified = claim.notified, notified
        ur_guard_unlock(&self.guard)
        return before

    cdef object set_holder(self, object holder):
        """Record the new holder; returns the previous one."""
        ur_guard_lock(&self.guard)
        holder, self.holder = self.holder, holder
        ur_guard_unlock(&self.guard)
        return holder  # which may die now that the guard is free

    cdef object release_hold(self):
        """Record that the lock has no holder; returns the previous one."""
        cdef PyObject *noted
        while True:
            holder = self.read_hold(&noted)
            if self.release_hold_of(holder, _taken(noted)):
                return holder

    cdef bint release_hold_of(self, object holder, dict noted) except -1:
        """The same, if this is still the holder: another thread may have closed the holder's loop. False: it is not."""
        cdef object none = None
        cdef dict no_loop = None
        cdef bint unchanged
        ur_guard_lock(&self.guard)
        unchanged = self.holder is holder and self.noted is noted
        if unchanged:
            none, self.holder = self.holder, none
            no_loop, self.noted = self.noted, no_loop
        ur_guard_unlock(&self.guard)
        if unchanged and noted is not None:
            noted.pop(self, None)
        return unchanged

    cdef int note_loop(self, Waitlist lock) except -1:
        """Make this thread's running loop hand the lock on if it is closed before the lock is released."""
        cdef Loop loop = running_loop()
        cdef dict noted
        if loop is not None:
            noted = loop.held_locks
            noted[self] = lock
            ur_guard_lock(&self.guard)
            noted, self.noted = self.noted, noted
            ur_guard_unlock(&self.guard)
        return 0

    def claim(self, Waitlist line):
        """Make a claim for the holder, which is about to release the lock and wait in this line."""
        cdef Claim claim = Claim.__new__(Claim)
        if self.waiting and self.caller_has_died():
            raise RuntimeError("cannot wait on un-acquired lock")
        claim.claims, claim.line, claim.loop = self, line, _weak(_running_loop())
        self.add(claim, self.release_hold(), 1)
        return claim

    cdef int add(self, Claim claim, object frame, Py_ssize_t references) except -1:
        """Add the claim under the frame that held the lock, unless that frame's coroutine has ended: it acquired the lock
        for its caller, and will not release it itself. `references` is how many the calling function has to the frame."""
        if type(frame) is _Frame and frame not in self.waiting and not ur_has_ended(<PyObject *> frame, references):
            claim.frame = frame
        if len(self.waiting) >= self.sweep_at:
            self.sweep()
        self.waiting[claim.key()] = claim
        return 0

    def loop_closed(self, Loop loop, lock):
        """Hand the lock on if one of this loop's tasks still holds it. If the loop has no task left, the task that acquired
        the lock has ended without a release, and leaves that to others, as with asyncio's lock."""
        cdef Claim claim = Claim.__new__(Claim)
        cdef PyObject *owned
        cdef object holder = self.read_hold(&owned)
        cdef dict noted = _taken(owned)
        if noted is not loop.held_locks:
            return
        claim.claims, claim.loop, claim.given_up = self, _weak(loop), True
        # Add the claim first: until then the holder may release the lock, in whichever thread the holder is destroyed.
        self.add(claim, holder, 2)
        if (claim.frame is not None or all_tasks(loop)) and self.release_hold_of(holder, noted):
            lock.release_to_wait()
        else:
            self.waiting.pop(claim.key(), None)

    cdef int hold(self) except -1:
        """Record the calling coroutine as the holder."""
        cdef PyObject *frame = ur_own_frame(1)
        if frame is NULL:
            # In a plain thread the holder may be a generator that calls the lock itself, so a few frames are enough to look
            # at.
            frame = ur_own_frame(4 if running_loop() is None and _running_loop() is None else -1)
        self.set_holder(_taken(frame))
        return 0

    cdef int hold_unseen(self) except -1:
        """Record this loop as the holder's: a task acquired the lock for a coroutine that is not on the stack."""
        self.set_holder(_weak(_running_loop()))
        return 0

    cdef bint let_go(self) except -1:
        """The lock is being released. False: not by its holder but by a destroyed task that waited in a Condition, so the
        holder keeps the lock."""
        cdef PyObject *owned
        cdef dict noted
        while True:
            holder = self.read_hold(&owned)
            noted = _taken(owned)
            if self.waiting and not self.is_released_by_holder(holder):
                return False
            if self.release_hold_of(holder, noted):
                return True

    cdef bint is_released_by_holder(self, object holder) except -1:
        """False: by a task whose claim this takes out."""
        cdef object outer = _taken(ur_own_frame(-1))
        cdef Claim claim
        while outer is not None:
            if outer is holder:
                return True
            claim = self.claim_of(outer)
            if claim is not None:
                return False
            outer = _taken(ur_next_frame(outer))
        if ur_is_destroyed() and (type(holder) is not _ref or not _is_closed(holder)):
            # A task that acquired the lock through another task has a claim without a frame.
            for claim in list(self.waiting.values()):
                if claim.frame is None and claim.dead() and self.waiting.pop(claim, None) is not None:
                    return False
        return True

    cdef bint caller_has_died(self) except -1:
        """True: the caller caught the exception that destroys it, and now uses the lock as if it held it."""
        cdef PyObject *noted
        cdef object outer = _taken(ur_own_frame(-1)), holder = self.read_hold(&noted)
        cdef Claim claim
        _taken(noted)
        while outer is not None:
            if outer is holder:
                return False
            claim = self.waiting.get(outer)
            if claim is not None:
                return claim.dead()
            outer = _taken(ur_next_frame(outer))
        if ur_is_destroyed():
            for claim in list(self.waiting.values()):
                if claim.frame is None and claim.dead():
                    return True
        return False

    cdef Claim claim_of(self, object frame):
        """Take out the claim of a coroutine that is being destroyed. A living coroutine does not release while it waits."""
        cdef Claim claim = self.waiting.get(frame)
        if claim is None or not (claim.dead() or ur_is_destroyed() or not _is_running(claim.loop)):
            return None
        return self.waiting.pop(frame, None)

    cdef int sweep(self) except -1:
        """Drop the claims of coroutines that ended without releasing the lock, because they have no `finally`."""
        cdef Claim claim
        for claim in list(self.waiting.values()):
            if claim.given_up and (claim.frame is None or ur_has_ended(<PyObject *> claim.frame, 2)):
                self.waiting.pop(claim.key(), None)
        self.sweep_at = max(64, 2 * len(self.waiting))
        return 0

    def __repr__(self):
        return f"<LockClaims waiting={len(self.waiting)}>"


ur_use_frames(relied_on("coroutine_frames", coroutine_frames_are_as_known(
    lambda: _taken(ur_own_frame(1)), lambda coroutine: ur_is_exiting(<PyObject *> coroutine))))
