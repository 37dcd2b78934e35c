# Outcome: the compiled half of Job: its state, its result, and the line of those that wait for it. Owns the result or
# exception and, while the job runs, the task. Any thread may wait, ask or cancel. The thread that runs the job settles it,
# once. Other threads reach the task only through its own loop.
import concurrent.futures
import sys
import threading
import types
from asyncio import CancelledError
from asyncio.events import _get_running_loop as _running_loop
from asyncio.log import logger
from contextvars import copy_context

from uringloop._core.lifetime.guard cimport (
    ur_guard_lock, ur_guard_unlock, ur_load_flag, ur_only_core_makes, ur_store_flag,
)
from uringloop._core.handoff.thread_wait cimport TIMED_OUT, block, not_in_a_loop
from uringloop._core.handoff.timeouts cimport timeout_seconds
from uringloop._core.handoff.waitlist cimport Waitlist

from uringloop.errors import JobExited

cdef object _Cancelled = concurrent.futures.CancelledError
cdef object _THREAD = object()
cdef object _is_finalizing = sys.is_finalizing  # a C variable: the last collection finds the module's globals cleared
_STATES = ("PENDING", "RUNNING", "FINISHED", "FINISHED", "CANCELLED_AND_NOTIFIED")


cdef class DoneCallback:
    """A callback of add_done_callback."""

    cdef int report(self, Outcome outcome) except -1:
        """The outcome is settled. Called by the thread that has settled it, or that adds the callback later."""
        if self.loop is None:
            self._run(outcome)
            return 0
        try:
            self.loop.call_soon_threadsafe(self._run, outcome, context=self.cvars)
        except RuntimeError:
            pass  # the loop is closed, and calls no callback any more
        return 0

    def _run(self, Outcome outcome):
        if ur_load_flag(&self.removed):
            return
        try:
            self.callback(outcome)
        except Exception:
            if self.loop is not None:
                raise  # to the loop's exception handler
            logger.exception("Exception calling %r of %r", self.callback, outcome)


cdef class Outcome(Waitlist):
    """concurrent.futures.Future's methods, and `await` on any loop."""

    __class_getitem__ = classmethod(types.GenericAlias)

    def __cinit__(self, owner, name=None):
        self._owner, self._name = owner, name
        self.callbacks = []

    # Running and settling

    cdef bint set_running(self, object loop) except -1:
        """The intake is about to make the task on `loop`. False: the job was cancelled before."""
        cdef bint pending
        ur_guard_lock(&self.guard)
        pending = self.state == OUTCOME_PENDING
        if pending:
            ur_store_flag(&self.state, OUTCOME_RUNNING)
            self.loop = loop
        ur_guard_unlock(&self.guard)
        return pending

    cdef bint settle(self, OutcomeState state, object value, object error, OutcomeState highest_state) except -1:
        """Settle the job, from any thread. False: it is settled already, or its state is beyond `highest_state`."""
        cdef object loop = None
        cdef object traceback = None if error is None else error.__traceback__
        ur_guard_lock(&self.guard)
        if self.state > <int> highest_state:
            ur_guard_unlock(&self.guard)
            return False
        self.value = value      # these fields were None, so no object dies under the guard
        self.error = error
        self.traceback = traceback
        loop, self.loop = self.loop, None
        ur_store_flag(&self.state, state)
        try:
            self.unlock_and_grant_all()
            self.announce()
        finally:  # whatever a callback raises, the intake and the owner must count this job as ended
            if self._intake is not None:
                self._intake.settled(self)
            self._owner._settled()
        return True

    def _begin_without_a_task(self):
        """A thread runs the job's function, which cannot be cancelled. False: the job was cancelled before."""
        return self.set_running(None)

    def _settle_by(self, task):
        """The task's done callback: settle the job with the task's result."""
        try:
            value = task.result()
        except CancelledError:
            self.settle(OUTCOME_CANCELLED, None, None, OUTCOME_RUNNING)
        except BaseException as error:
            self.settle(OUTCOME_FAILED, None, error, OUTCOME_RUNNING)
        else:
            self.settle(OUTCOME_DONE, value, None, OUTCOME_RUNNING)
        finally:
            self.task = None  # only here: other threads may settle the job, but only this thread uses the task

    def _raised(self, error):
        """Whether its task has ended with this exception; the loop's next turn settles the job. Called on the context's
        thread."""
        task = self.task
        return task is not None and task.done() and not task.cancelled() and task.exception() is error

    def _settle(self, value, error):
        """Settle the job without its task."""
        return self.settle(OUTCOME_DONE if error is None else OUTCOME_FAILED, value, error, OUTCOME_RUNNING)

    def _break_off(self, error):
        """Fail the job, because its context died; called on that context's thread. A task that has just ended, for example
        the one that killed the context, settles its job itself."""
        if self.task is None or not self.task.done():
            self._settle(None, error)

    cdef int announce(self) except -1:
        """Tell the callbacks, and the waiters of concurrent.futures."""
        cdef list callbacks
        ur_guard_lock(&self.guard)
        callbacks, self.callbacks = self.callbacks, None
        condition = self.condition  # a thread that makes a condition from now on finds the state settled
        if condition is None:
            ur_store_flag(&self.announced, True)
        ur_guard_unlock(&self.guard)
        if condition is not None:
            with condition:
                ur_store_flag(&self.announced, True)
                for waiter in self._waiters:
                    if ur_load_flag(&self.state) == OUTCOME_CANCELLED:
                        waiter.add_cancelled(self)
                    elif ur_load_flag(&self.state) == OUTCOME_FAILED:
                        waiter.add_exception(self)
                    else:
                        waiter.add_result(self)
                condition.notify_all()
        for callback in callbacks:
            (<DoneCallback> callback).report(self)
        return 0

    # Waiting for the result

    cdef bint try_acquire(self) noexcept:
        return ur_load_flag(&self.state) > OUTCOME_RUNNING

    cdef object collect(self, object value):
        if value is _THREAD:
            return None  # the thread reads the result itself
        if ur_load_flag(&self.state) == OUTCOME_FAILED and isinstance(self.error, (SystemExit, KeyboardInterrupt)):
            # If the waiting task raised it, it would end this loop as well.
            ur_store_flag(&self.looked, True)
            raise JobExited(f"{self!r} raised {self.error!r}") from self.error
        return self.get(CancelledError)

    cdef object get(self, object cancelled):
        if ur_load_flag(&self.state) == OUTCOME_DONE:
            return self.value
        if ur_load_flag(&self.state) == OUTCOME_CANCELLED:
            raise cancelled()
        ur_store_flag(&self.looked, True)
        raise self.error.with_traceback(self.traceback)

    cdef bint cancel_instead(self, object message) except -1:
        return self.cancel(message)

    def __await__(self):
        return self.start(None)

    def result(self, timeout=None):
        """The coroutine's result. A plain thread waits for it; on a loop's thread it must be done already."""
        self._wait(timeout)
        return self.get(_Cancelled)

    def exception(self, timeout=None):
        self._wait(timeout)
        if ur_load_flag(&self.state) == OUTCOME_CANCELLED:
            raise _Cancelled()
        ur_store_flag(&self.looked, True)
        return self.error

    def _wait(self, timeout):
        timeout_seconds(timeout)
        if self.try_acquire():
            return
        not_in_a_loop("Job.result()", "`await job`")
        if block(self, _THREAD, timeout) is TIMED_OUT:
            raise TimeoutError()

    # State, callbacks and cancellation

    def done(self):
        return ur_load_flag(&self.state) > OUTCOME_RUNNING

    def cancelled(self):
        return ur_load_flag(&self.state) == OUTCOME_CANCELLED

    def running(self):
        return ur_load_flag(&self.state) == OUTCOME_RUNNING

    @property
    def name(self):
        """The name that was given to submit, which is the task's as well; or None."""
        return self._name

    def add_done_callback(self, callback, *, context=None):
        """Call `callback` with the job once it is settled. In a thread that runs a loop, the callback is called on that loop, in
        `context`, as asyncio's futures do it; one that is added in another thread is called by the thread that settles the
        job, or at once if the job is settled already, as those of concurrent.futures."""
        cdef DoneCallback added = DoneCallback.__new__(DoneCallback)
        added.callback, added.loop = callback, _running_loop()
        if added.loop is not None:
            added.cvars = copy_context() if context is None else context
        self.add_callback(added)

    def _call_when_settled(self, callback):
        """add_done_callback for the scheduler's own callbacks: also if a loop's thread adds it, the thread that settles the job
        calls it, and so no loop that is blocked or closed delays or loses it."""
        cdef DoneCallback added = DoneCallback.__new__(DoneCallback)
        added.callback = callback
        self.add_callback(added)

    cdef int add_callback(self, DoneCallback added) except -1:
        cdef list callbacks
        ur_guard_lock(&self.guard)
        callbacks = self.callbacks
        if callbacks is not None:
            callbacks.append(added)
        ur_guard_unlock(&self.guard)
        if callbacks is None:
            added.report(self)
        return 0

    def remove_done_callback(self, callback):
        """Remove the callback, however often it was added, and return how often that was: 0 once the job is settled."""
        cdef list found, kept
        cdef DoneCallback each
        cdef Py_ssize_t count = 0
        cdef bint replaced = False
        while not replaced:
            ur_guard_lock(&self.guard)
            found = self.callbacks
            ur_guard_unlock(&self.guard)
            if found is None:
                break
            seen, kept = list(found), []  # a copy, because other threads may add to it
            for node in seen:
                each = <DoneCallback> node
                if not ur_load_flag(&each.removed) and each.callback == callback:
                    ur_store_flag(&each.removed, True)  # now, because the job may be settled meanwhile
                    count += 1
                if not ur_load_flag(&each.removed):
                    kept.append(each)
            replaced = self.replace_callbacks(found, len(seen), kept)
        return count

    cdef bint replace_callbacks(self, list found, Py_ssize_t length, list kept) noexcept:
        """False: another thread has changed the list since it was found."""
        cdef bint unchanged
        ur_guard_lock(&self.guard)
        unchanged = self.callbacks is found and len(found) == length
        if unchanged:
            self.callbacks = kept  # the caller keeps the old list, so no object dies under the guard
        ur_guard_unlock(&self.guard)
        return unchanged

    def cancel(self, message=None):
        """Cancel the job, from any thread. If it has not started, it never will; if it runs, its task is cancelled. False:
        it is done already, or a thread runs it."""
        cdef object loop = None
        if self.settle(OUTCOME_CANCELLED, None, None, OUTCOME_PENDING):
            return True
        ur_guard_lock(&self.guard)
        if self.state == OUTCOME_RUNNING:
            loop = self.loop
        ur_guard_unlock(&self.guard)
        if loop is None:
            return False
        try:
            loop.call_soon_threadsafe(self._cancel_task, message)
        except RuntimeError:
            return False  # the loop is closed: closing settles the jobs that ran on it
        return True

    def _cancel_task(self, message):
        if self.task is not None:
            self.task.cancel(message)

    def _get_snapshot(self):
        """For asyncio.wrap_future since Python 3.15: (done, cancelled, result, exception)."""
        if not self.try_acquire():
            return False, False, None, None
        ur_store_flag(&self.looked, True)
        return True, ur_load_flag(&self.state) == OUTCOME_CANCELLED, self.value, self.error

    # Attributes that concurrent.futures.wait() and as_completed() use

    @property
    def _state(self):
        """FINISHED only once the waiters were told. They read it under the condition, and then either see the end here or
        add themselves to `_waiters` and are told: never both."""
        cdef bint announced = ur_load_flag(&self.announced)
        return _STATES[ur_load_flag(&self.state) if announced else min(ur_load_flag(&self.state), <int> OUTCOME_RUNNING)]

    @property
    def _condition(self):
        made, waiters = threading.Condition(), []
        ur_guard_lock(&self.guard)
        if self.condition is None:
            self._waiters = waiters
            self.condition = made
        ur_guard_unlock(&self.guard)
        return self.condition

    def __del__(self):
        if _is_finalizing():
            return  # in the interpreter's last collection, the globals that logging uses may be None
        if ur_load_flag(&self.state) == OUTCOME_FAILED and not ur_load_flag(&self.looked):
            logger.error("Exception of %r was never retrieved", self, exc_info=self.error)


ur_only_core_makes(DoneCallback)
