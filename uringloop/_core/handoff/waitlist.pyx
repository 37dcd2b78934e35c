# Waiter and Waitlist: a line of tasks and threads that wait for a primitive, each woken on its own loop. No other file
# wakes a task of another loop. The Waitlist owns the line and its waiters, and passes a grant from one waiter to the next.
# The primitive, a subclass, owns what they wait for, and defines `try_acquire`, `put_back` and `collect`.
#
# The Waitlist grants under the guard, before it wakes the waiter. What it grants is never free in between, so no newcomer
# overtakes; and if the waiter can no longer use its grant, the Waitlist hands that on at once.
# No thread holds the guard while a callback, a destructor or any other Python code may run. To wake a task, the Waitlist
# hands a Runnable to its loop: a release never resumes a task itself, so a chain of releases never recurses.
from cpython.contextvars cimport PyContext_CopyCurrent
from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF, Py_INCREF, Py_XDECREF

import _thread
from asyncio import exceptions
from asyncio.events import _get_running_loop as _running_loop

from uringloop._core.awaitables.coroutine cimport as_exception, ur_set_iternext, ur_stop
from uringloop._core.cpython.context cimport context_enter_unchecked, context_exit
from uringloop._core.engine.ready_queue cimport ReadyQueue, Runnable, ready_push, ready_push_owned
from uringloop._core.loop.loop cimport Loop, runs_here
from uringloop._core.lifetime.clearing cimport call_before_clear
from uringloop._core.lifetime.guard cimport (
    ur_add_fast_method, ur_guard_init, ur_guard_lock, ur_guard_unlock, ur_only_core_makes,
)
from uringloop._core.lifetime.links cimport show_links
from uringloop._core.handoff.delivery cimport deliver_foreign
from uringloop._core.handoff.ready_awaitable cimport ready_awaitable
from uringloop._core.handoff.wait_times cimport now_if_recorded

cdef extern from "Python.h":
    PyObject *PyObject_CallOneArg(PyObject *callable, PyObject *arg) noexcept

cdef extern from *:
    """
    UR_DEFINE_FREE_LIST(ur_waiters)

    static inline int ur_already_raised(void) { return -1; }
    """
    void ur_waiters_install(object type) noexcept
    void PyObject_GC_Track(object) noexcept
    bint PyObject_GC_IsTracked(object) noexcept
    int already_raised "ur_already_raised"() except -1

cdef object _CancelledError = exceptions.CancelledError
cdef object _new_thread_lock = _thread.allocate_lock
cdef str _CONTEXT = "context"

ctypedef PyObject *(*raw_step)(Waiter, bint *) noexcept


cdef class Waiter(Runnable):
    """The place of one task or thread in a line. The task awaits it, and to the task it looks like a future."""

    cdef bint abandon(self) noexcept:
        """The waiter will not resume. True: it had been granted something, which the caller must hand on."""
        cdef Waitlist line = self.line
        cdef bint granted, waiting
        if line is None:
            return False  # the collector has emptied this waiter, and called here before it did
        ur_guard_lock(&line.guard)
        granted = self.state == WAITER_GRANTED
        if granted:
            self.state = WAITER_PASSED
            line.passes += 1
        waiting = line.withdraw(self)
        ur_guard_unlock(&line.guard)
        if waiting:
            Py_DECREF(self)
        return granted

    cdef bint is_lost(self) except -1:
        """The waiter's loop is closed. True: it had been granted something, which the caller must hand on."""
        if not self.abandon():
            return False
        self.line.grantee_lost(self.value)
        return True

    cdef int leave(self) except -1:
        """Its coroutine resumes with an exception. A loop may still have the waiter queued: it cannot wait in a line again."""
        cdef Waitlist line = self.line
        cdef bint granted = self.abandon()
        ur_guard_lock(&line.guard)
        self.state = WAITER_OVER
        ur_guard_unlock(&line.guard)
        if granted:
            line.hand_on()
        return 0

    cdef bint wake_up(self) except -1:
        """Wake it through its own loop, from any thread. False: that loop is closed."""
        cdef Loop loop
        if self.on_own_loop:
            loop = <Loop> self._loop
            if runs_here(loop):
                ready_push(loop.ready, self)
                return True
            # A loop without an inbox has been emptied by the collector, which is the same as closed.
            return loop.inbox is not None and loop.inbox.try_push(self)
        if self.thread_lock is not None:
            self.thread_lock.release()
            return True
        return deliver_foreign(self, self._loop)

    cdef int run(self, object loop) except -1:
        cdef object callback = self.callback
        cdef PyObject *result
        self.delivered = True
        if callback is None:
            return 0
        self.callback = None
        if context_enter_unchecked(<PyObject *> self.cvars) < 0:
            return self.report(loop)
        result = PyObject_CallOneArg(<PyObject *> callback, <PyObject *> self)
        context_exit(<PyObject *> self.cvars)
        if result is NULL:
            return self.report(loop)
        Py_XDECREF(result)
        return 0

    cdef int report(self, object loop) except -1:
        try:
            already_raised()
        except (SystemExit, KeyboardInterrupt):
            raise
        except BaseException as error:
            loop.call_exception_handler({"message": f"Exception when waking {self!r}", "exception": error})
        return 0

    cdef object culprit(self):
        return None if self.callback is None else getattr(self.callback, "__self__", self.callback)

    cdef void dropped(self) noexcept:
        if self.is_lost():
            self.line.hand_on()

    # The methods of a future, for the awaiting task

    def cancel(self, msg=None):
        """Leave the line. False: it was granted already. Then the task throws into it, and `leave` hands the grant on."""
        cdef Waitlist line = self.line
        cdef bint waiting
        if line.cancel_instead(msg):
            return True
        ur_guard_lock(&line.guard)
        waiting = line.withdraw(self)
        ur_guard_unlock(&line.guard)
        if waiting:
            self.message = msg
            deliver(<PyObject *> self)
        return waiting

    def result(self):
        if self.state == WAITER_CANCELLED:
            raise _CancelledError() if self.message is None else _CancelledError(self.message)
        if self.state == WAITER_FAILED:
            raise self.error if self.error is not None else self.line.refusal

    def done(self):
        return self.state != WAITER_WAITING

    def cancelled(self):
        return self.state == WAITER_CANCELLED

    def get_loop(self):
        return self._loop

    # The methods of an awaitable, for the awaiting coroutine

    def __await__(self):
        return self

    def send(self, value):
        cdef bint ended = False
        found = _step(self, &ended)
        if ended:
            self.line.held_by_a_task()
            raise StopIteration(found)
        return found

    def throw(self, kind, value=None, traceback=None):
        self.leave()
        raise as_exception(kind, value, traceback)

    def close(self):
        self.leave()

    def __repr__(self):
        return f"<Waiter {_STATES[<int> self.state]} for {self.line!r}>"


_STATES = ("new", "waiting", "granted", "cancelled", "failed", "passed", "done", "over")


cdef object _step(Waiter waiter, bint *ended):
    """One step of the await: returns the waiter for the task to wait on, or, with `ended` set, the result."""
    cdef Waitlist line = waiter.line
    cdef WaiterState state
    ur_guard_lock(&line.guard)
    if waiter.state == WAITER_PASSED:  # it resumes after all, but another waiter has its grant: wait in the line again
        line.enter(waiter)
    state = waiter.state
    if state == WAITER_GRANTED:
        waiter.state = WAITER_DONE
    ur_guard_unlock(&line.guard)
    if state == WAITER_GRANTED:
        ended[0] = True
        return line.collect(waiter.value)
    if state == WAITER_WAITING:
        waiter._asyncio_future_blocking = True
        waiter.delivered = False
        return waiter
    if state == WAITER_DONE or state == WAITER_OVER:
        raise RuntimeError("cannot reuse an already awaited wait")
    return waiter.result()


cdef PyObject *_waiter_next(PyObject *self) noexcept:
    cdef bint ended = False
    cdef PyObject *found = (<raw_step> <void *> _step)(<Waiter> self, &ended)
    return ur_stop(found) if ended and found is not NULL else found


cdef object _add_done_callback(object self, PyObject **args, Py_ssize_t nargs, PyObject *kwnames):
    cdef Waiter waiter = <Waiter> self
    cdef object cvars
    if nargs != 1 or (kwnames is not NULL and (<tuple> kwnames) != (_CONTEXT,)):
        raise TypeError("add_done_callback() takes a callback and a context")
    cvars = None if kwnames is NULL else <object> args[1]
    if cvars is None:
        cvars = PyContext_CopyCurrent()
    if waiter.delivered:
        waiter._loop.call_soon(<object> args[0], waiter, context=cvars)
        return
    if waiter.callback is not None:
        raise RuntimeError(f"{waiter!r} is awaited already")
    waiter.callback = <object> args[0]
    waiter.cvars = cvars


cdef class Waitlist:
    """A line of waiters, first come first served."""

    def __cinit__(self):
        ur_guard_init(&self.guard)

    def __dealloc__(self):
        # Each waiter refers to this line, so the collector takes apart the line with all its waiters: none will resume.
        cdef PyObject *waiter
        while self.head is not NULL:
            waiter = self.head
            self.head = (<Waiter> waiter).next
            (<Waiter> waiter).next = (<Waiter> waiter).previous = NULL
            (<Waiter> waiter).state = WAITER_CANCELLED
            Py_DECREF(<object> waiter)

    cdef bint try_acquire(self) noexcept:
        """Under the guard: take what this line is for, if it can be taken now. The Waitlist calls it for a newcomer, and
        after `put_back` for the first in line."""
        return False

    cdef bint put_back(self) noexcept:
        """Under the guard: make one more available. False: refused, for example by a lock that is not held. A primitive
        that grants all its waiters at once has nothing to put back."""
        return True

    cdef object collect(self, object value):
        """The result of a wait that took or was granted something. `value` is `start`'s, unless the grant replaced it."""
        return value

    cdef str wait_name(self):
        """The name of the method that waits in this line, as asyncio spells it."""
        return f"{type(self).__name__}.wait"

    cdef bint cancel_instead(self, object message) except -1:
        """A waiting task is cancelled. True: this has cancelled the line's job instead; the task waits until that ends."""
        return False

    cdef int grantee_lost(self, object value) except -1:
        """A waiter with a grant will never run: its loop is closed. The primitive may react; the caller hands it on."""

    cdef int held_by_a_task(self) except -1:
        """A task that drives its Wait itself was granted: no coroutine awaits that Wait, so the stack shows no holder."""

    cdef object start(self, object value):
        """An iterator to await: it ends at once if the caller could take what it came for; else it is a waiter in line."""
        cdef Waiter waiter
        cdef WaiterState state
        if not take(self):
            waiter = task_waiter(self, value)
            ur_guard_lock(&self.guard)
            state = self.enter(waiter)  # another thread may have released it while this one made the waiter
            ur_guard_unlock(&self.guard)
            if state == WAITER_WAITING:
                return waiter
            if state == WAITER_FAILED:
                raise self.refusal
        return ready_awaitable(self.collect(value))

    cdef bint hand_on(self) except -1:
        """Put one back: the first in line owns it by the time this returns. The Waitlist passes over a waiter whose loop is
        closed. False: `put_back` refused."""
        cdef PyObject *next
        cdef bint more
        while True:
            next = grant_next(self, &more)
            if next is NULL or deliver(next):
                return more

    cdef int close_line(self, object refusal) except -1:
        """All waiters, and from now on every caller that would have to wait, get an exception of this class."""
        ur_guard_lock(&self.guard)
        self.refusal = refusal
        return self.unlock_and_fail_all(refusal)

    # Called under the guard, which these unlock

    cdef int unlock_and_grant_all(self) except -1:
        """Grant all waiters at once. The grant belongs to none of them: `hand_on` finds nothing to take if one is cancelled."""
        cdef PyObject *chain = _pop_all(self, WAITER_GRANTED, None)
        ur_guard_unlock(&self.guard)
        return _deliver_all(chain)

    cdef int unlock_and_fail_all(self, object error) except -1:
        """Give all waiters an exception of this class."""
        cdef PyObject *chain = _pop_all(self, WAITER_FAILED, error)
        ur_guard_unlock(&self.guard)
        return _deliver_all(chain)

    # Under the guard

    cdef WaiterState enter(self, Waiter waiter) noexcept:
        """The waiter takes what it wants, or goes to the end of the line. WAITER_FAILED: the line is closed."""
        if self.try_acquire():
            waiter.state = WAITER_GRANTED
        elif not self.append(waiter):
            waiter.state = WAITER_FAILED
        return waiter.state

    cdef bint withdraw(self, Waiter waiter) noexcept:
        """The waiter leaves the line, if it still waits. True: it did, and the caller owns the line's reference now."""
        if waiter.state != WAITER_WAITING:
            return False
        _unlink(self, waiter)
        waiter.state = WAITER_CANCELLED
        self.cancels += 1
        return True

    cdef bint append(self, Waiter waiter) noexcept:
        """Put the waiter at the end of the line. False: the line is closed."""
        if self.refusal is not None:
            return False
        Py_INCREF(waiter)
        waiter.state = WAITER_WAITING
        waiter.next = NULL
        waiter.previous = self.tail
        if self.tail is NULL:
            self.head = <PyObject *> waiter
        else:
            (<Waiter> self.tail).next = <PyObject *> waiter
        self.tail = <PyObject *> waiter
        self.waiting += 1
        self.threads += waiter._loop is None
        self.waits += 1
        return True

    cdef dict counts(self):
        return {"waiting": self.waiting, "threads": self.threads, "waits": self.waits, "grants": self.grants,
                "cancels": self.cancels, "passes": self.passes}


cdef Waiter task_waiter(Waitlist line, object value):
    cdef Waiter waiter = Waiter.__new__(Waiter)
    cdef object loop = _running_loop()
    if loop is None:
        raise RuntimeError("no running event loop: a plain thread uses `with`, or the method ending in _sync")
    if not PyObject_GC_IsTracked(waiter):
        PyObject_GC_Track(waiter)  # the collector must see a waiter, unlike a handle: a coroutine and a task refer to it too
    waiter.line = line
    waiter.value = value
    waiter._loop = loop
    waiter.on_own_loop = isinstance(loop, Loop)
    waiter.since_ns = now_if_recorded()
    return waiter


cdef Waiter thread_waiter(Waitlist line, object value):
    cdef Waiter waiter = Waiter.__new__(Waiter)
    waiter.line = line
    waiter.value = value
    waiter.since_ns = now_if_recorded()
    waiter.thread_lock = _new_thread_lock()
    waiter.thread_lock.acquire()
    return waiter


cdef void _unlink(Waitlist line, Waiter waiter) noexcept:
    """Under the guard: take the waiter out of the line, wherever it stands. The caller owns the line's reference now."""
    if waiter.previous is NULL:
        line.head = waiter.next
    else:
        (<Waiter> waiter.previous).next = waiter.next
    if waiter.next is NULL:
        line.tail = waiter.previous
    else:
        (<Waiter> waiter.next).previous = waiter.previous
    waiter.next = waiter.previous = NULL
    line.waiting -= 1
    line.threads -= waiter._loop is None


cdef PyObject *_pop_all(Waitlist line, WaiterState state, object error) noexcept:
    """Under the guard: take out all waiters as granted or failed, linked by `next`, for `_deliver_all`."""
    cdef PyObject *first = line.head
    cdef PyObject *waiter = first
    while waiter is not NULL:
        (<Waiter> waiter).state = state
        (<Waiter> waiter).previous = NULL
        if error is not None:
            (<Waiter> waiter).error = error  # the field was None, so no object dies under the guard
        waiter = (<Waiter> waiter).next
    if state == WAITER_GRANTED:
        line.grants += line.waiting
    line.head = line.tail = NULL
    line.waiting = line.threads = 0
    return first


cdef bint take(Waitlist line) noexcept:
    """Try to take it, from any thread, without waiting. Returns what `try_acquire` returned."""
    cdef bint taken
    ur_guard_lock(&line.guard)
    taken = line.try_acquire()
    ur_guard_unlock(&line.guard)
    return taken


cdef PyObject *grant_next(Waitlist line, bint *more) noexcept:
    """The guarded half of `hand_on`: returns the waiter that owns it now, for `deliver`. NULL: no waiter took it."""
    cdef PyObject *next
    ur_guard_lock(&line.guard)
    more[0] = line.put_back()
    next = line.head
    if next is not NULL and more[0] and line.try_acquire():
        _unlink(line, <Waiter> next)
        (<Waiter> next).state = WAITER_GRANTED
        line.grants += 1
    else:
        next = NULL
    ur_guard_unlock(&line.guard)
    return next


cdef bint deliver(PyObject *owned) except -1:
    """Wake a waiter that was taken out of the line; takes over the reference to it. False: the waiter's loop is closed, so
    its grant belongs to the caller again."""
    cdef Waiter waiter = <Waiter> owned
    Py_DECREF(waiter)
    return waiter.wake_up() or not waiter.is_lost()


cdef int _deliver_all(PyObject *chain) except -1:
    """Wake the waiters that `_pop_all` took out, with one wake for each loop."""
    cdef ReadyQueue batch = ReadyQueue()
    cdef PyObject *rest
    cdef PyObject *last
    cdef PyObject *node
    cdef Waiter waiter
    cdef Loop loop
    while chain is not NULL:
        waiter = <Waiter> chain
        node = chain
        chain = waiter.next
        waiter.next = NULL
        if not waiter.on_own_loop or runs_here(<Loop> waiter._loop):
            deliver(node)
            continue
        # All waiters of this loop go in one batch; the others stay in the chain, in order.
        loop = <Loop> waiter._loop
        ready_push_owned(batch, node)
        rest = last = NULL
        while chain is not NULL:
            node = chain
            chain = (<Waiter> node).next
            if (<Waiter> node)._loop is loop:
                ready_push_owned(batch, node)
            else:
                (<Waiter> node).next = NULL
                if last is NULL:
                    rest = node
                else:
                    (<Waiter> last).next = node
                last = node
        chain = rest
        if not loop.inbox.try_push_all(batch):
            while batch.head is not NULL:
                node = batch.head
                batch.head = (<Waiter> node).next
                batch.count -= 1
                waiter = <Waiter> node
                Py_DECREF(waiter)
                waiter.is_lost()
            batch.tail = NULL
    return 0


cdef void _before_clear(PyObject *self) noexcept:
    (<Waiter> self).dropped()  # while it still has its line: neither that line nor a loop's queue may hold an emptied waiter


call_before_clear(Waiter, _before_clear)
# Without this, the collector could never free a lock that only its own waiters refer to.
show_links(Waitlist, &(<Waitlist> <PyObject *> Waitlist).head, &(<Waiter> <PyObject *> Waitlist).next)
ur_set_iternext(Waiter, _waiter_next)
ur_add_fast_method(Waiter, "add_done_callback", <void *> _add_done_callback,
                   "Register the awaiting task's callback, called once, after the waiter has left the line.")
ur_waiters_install(<object> Waiter)
ur_only_core_makes(Waiter)
