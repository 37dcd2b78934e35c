# Claims: who holds a lock that conditions share, and who let go of it to wait for one of them. asyncio's lock has no
# owner: whoever calls release() frees it. That is not enough here. A task that waits in a Condition may be destroyed with
# its loop, and then the code around `wait` releases a lock that a task of another loop, or a thread, holds by now. So a
# lock with conditions remembers which coroutine acquired it, and what such a task releases is a claim that it no longer has.
#
# A coroutine is told by its frame: the frame that acquires is the one that releases, also when a task of its own calls
# `wait` for it (wait_for and gather do that), and also while the collector destroys it. A claim owns a reference to that
# frame, which does not keep the coroutine alive. It never touches the lock itself.
from asyncio.events import _get_running_loop as _running_loop
from asyncio.tasks import wait_for
from contextlib import AsyncExitStack
from types import FrameType
from weakref import ref

from cython import no_gc_clear

from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF

from uringloop._core.objects.guard cimport ur_guard_init, ur_guard_lock, ur_guard_unlock
from uringloop._core.wait.waitlist cimport Waitlist

cdef extern from *:
    """
    static PyObject *ur_helpers[2]; /* the files of coroutines that acquire and release for their caller */

    static int ur_is_a_helper(PyFrameObject *frame) {
        PyCodeObject *code = PyFrame_GetCode(frame);
        PyObject *file = code->co_filename; /* the functions of a module share the object */
        Py_DECREF(code);
        return file == ur_helpers[0] || file == ur_helpers[1];
    }

    /* The nearest frame of a coroutine, or generator, of the program: from `frame` on, whose reference it takes, among
     * `most`. NULL, with no exception: there is none. */
    static PyObject *ur_coroutine_frame(PyFrameObject *frame, int most) {
        PyFrameObject *back;
        PyObject *owner;
        while (frame != NULL) {
            if (most-- == 0) {
                Py_DECREF(frame);
                break;
            }
            owner = PyFrame_GetGenerator(frame);
            if (owner != NULL) {
                Py_DECREF(owner);
                if (!ur_is_a_helper(frame)) return (PyObject *)frame;
            }
            back = PyFrame_GetBack(frame);
            Py_DECREF(frame);
            frame = back;
        }
        return NULL;
    }

    static PyObject *ur_own_frame(int most) {
        PyFrameObject *frame = PyEval_GetFrame();
        if (frame == NULL) PyErr_Clear(); /* no memory for it */
        Py_XINCREF(frame);
        return ur_coroutine_frame(frame, most);
    }

    static PyObject *ur_next_frame(PyObject *frame) {
        return ur_coroutine_frame(PyFrame_GetBack((PyFrameObject *)frame), -1);
    }

    /* A claim and the dict have it, and the coroutine as long as there is one. */
    static int ur_is_of_nobody(PyObject *frame) { return Py_REFCNT(frame) <= 2; }

    static int ur_is_destroyed(void) {
        PyObject *handled = PyErr_GetHandledException();
        int found = handled != NULL && PyErr_GivenExceptionMatches(handled, PyExc_GeneratorExit);
        Py_XDECREF(handled);
        return found;
    }

    static void ur_set_helpers(PyObject *first, PyObject *second) {
        Py_INCREF(first), Py_INCREF(second);
        ur_helpers[0] = first, ur_helpers[1] = second;
    }
    """
    PyObject *ur_own_frame(int most) noexcept
    PyObject *ur_next_frame(object frame) noexcept
    bint ur_is_of_nobody(PyObject *frame) noexcept
    bint ur_is_destroyed() noexcept
    void ur_set_helpers(object first, object second) noexcept

ur_set_helpers(AsyncExitStack.enter_async_context.__code__.co_filename, wait_for.__code__.co_filename)

cdef object _Frame = FrameType
cdef object _ref = ref


cdef object _weak(object what):
    """A claim must not keep alive what is about to die. None: there is nothing, or it can not be referred to so."""
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
    """The object behind a reference that is the caller's; None: NULL."""
    if owned is NULL:
        return None
    cdef object found = <object> owned
    Py_DECREF(found)
    return found


@no_gc_clear  # the collector may come by a waiter, which tells its claim, after the claim
cdef class Claim:
    """One task in Condition.wait(): it had the lock, and will have it again before the code around it lets go."""

    cdef bint end(self) except -1:
        """Its task holds the lock again. False: the code around `wait` has let go already, so the lock is to be freed."""
        cdef Claims claims = self.claims
        if claims is None or claims.waiting.pop(self.key(), None) is None:
            return False
        claims.held_by(self.frame)
        return True

    cdef object key(self):
        return self if self.frame is None else self.frame

    def ended(self):
        """The same, where the lock does not see to it: its class has an acquire() of its own, or is not ours."""
        return self.end()

    def was_notified(self):
        cdef Claims claims = self.claims
        if claims is not None:
            ur_guard_lock(&claims.guard)
            self.notified = True
            ur_guard_unlock(&claims.guard)

    def pass_on(self):
        """It was notified and will not act on it: another may. Once, whoever finds out."""
        cdef Claims claims = self.claims
        cdef bint notified
        if claims is None:
            return
        ur_guard_lock(&claims.guard)
        notified = self.notified
        self.notified = False
        ur_guard_unlock(&claims.guard)
        if notified:
            self.line.give_back()

    def give_up(self):
        """The task will not hold the lock again, and the code around `wait` is going to release it all the same."""
        self.given_up = True
        self.pass_on()

    cdef bint dead(self) except -1:
        return self.given_up or _is_closed(self.loop)

    def __repr__(self):
        return f"<Claim {'given up' if self.given_up else 'waiting'} for {self.line!r}>"


cdef class Claims:
    """Of one lock, for all its conditions."""

    def __cinit__(self):
        ur_guard_init(&self.guard)
        self.waiting = {}
        self.sweep_at = 64

    cdef object held_by(self, object holder):
        """From now on; gives who held it before."""
        ur_guard_lock(&self.guard)
        holder, self.holder = self.holder, holder
        ur_guard_unlock(&self.guard)
        return holder  # which may die now, with the guard free

    def claim(self, Waitlist line):
        """For who holds the lock and is about to release it, to wait in this line."""
        cdef Claim claim = Claim.__new__(Claim)
        cdef object frame = self.held_by(None)
        claim.claims, claim.line, claim.loop = self, line, _weak(_running_loop())
        claim.frame = frame if type(frame) is _Frame and frame not in self.waiting else None
        if len(self.waiting) >= self.sweep_at:
            self.sweep()
        self.waiting[claim.key()] = claim
        return claim

    cdef int hold(self) except -1:
        """This coroutine acquired the lock."""
        cdef PyObject *frame = ur_own_frame(1)
        if frame is NULL:
            # In a plain thread it may be a generator, which asks for the lock itself: no need to look through all the stack.
            frame = ur_own_frame(4 if _running_loop() is None else -1)
        self.held_by(_taken(frame))
        return 0

    cdef int hold_unseen(self) except -1:
        """A task acquired it for a coroutine that is not to be seen from here."""
        self.held_by(_weak(_running_loop()))
        return 0

    cdef bint let_go(self) except -1:
        """The lock is being released. False: not by who holds it, but by one that waits and has been destroyed; so whoever
        holds the lock still does."""
        cdef object outer, holder
        cdef Claim claim
        if not self.waiting:
            self.held_by(None)
            return True
        ur_guard_lock(&self.guard)
        holder = self.holder
        ur_guard_unlock(&self.guard)
        outer = _taken(ur_own_frame(-1))
        while outer is not None:
            if outer is holder:
                self.held_by(None)
                return True
            claim = self.claim_of(outer)
            if claim is not None:
                return False
            outer = _taken(ur_next_frame(outer))
        if ur_is_destroyed() and (type(holder) is not _ref or not _is_closed(holder)):
            # A task that acquired the lock by way of another is not known by its frame.
            for claim in list(self.waiting.values()):
                if claim.frame is None and claim.dead() and self.waiting.pop(claim, None) is not None:
                    return False
        self.held_by(None)
        return True

    cdef Claim claim_of(self, object frame):
        """Taken out: of a coroutine that is being destroyed; one that lives has no business to release now."""
        cdef Claim claim = self.waiting.get(frame)
        if claim is None or not (claim.dead() or ur_is_destroyed() or not _is_running(claim.loop)):
            return None
        return self.waiting.pop(frame, None)

    cdef int sweep(self) except -1:
        """Some never let go: their coroutine ended without a `finally`."""
        cdef Claim claim
        for claim in list(self.waiting.values()):
            if claim.given_up and (claim.frame is None or ur_is_of_nobody(<PyObject *> claim.frame)):
                self.waiting.pop(claim.key(), None)
        self.sweep_at = max(64, 2 * len(self.waiting))
        return 0

    def __repr__(self):
        return f"<Claims waiting={len(self.waiting)}>"
