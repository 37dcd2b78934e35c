# Outcome: what becomes of a job, and who waits for it: the compiled half of Job. Owns the result or exception and,
# while it runs, the task. Any thread may wait, ask or cancel; the thread that runs the job settles it, once.
# The task itself is touched only through its own loop.
import concurrent.futures
import threading
import types
from asyncio import CancelledError
from asyncio.log import logger

from uringloop._core.lifetime.guard cimport ur_guard_lock, ur_guard_unlock, ur_load_flag, ur_store_flag
from uringloop._core.handoff.thread_wait cimport TIMED_OUT, block, not_in_a_loop
from uringloop._core.handoff.timeouts cimport timeout_seconds
from uringloop._core.handoff.waitlist cimport Waitlist

from uringloop.errors import JobExited

cdef object _Cancelled = concurrent.futures.CancelledError
cdef object _THREAD = object()
_STATES = ("PENDING", "RUNNING", "FINISHED", "FINISHED", "CANCELLED_AND_NOTIFIED")


cdef class Outcome(Waitlist):
    """concurrent.futures.Future's methods, and `await` on any loop."""

    __class_getitem__ = classmethod(types.GenericAlias)

    def __cinit__(self, owner, name=None):
        self._owner, self._name = owner, name
        self.callbacks = []

    # How it comes about

    cdef bint set_running(self, object loop) except -1:
        """On `loop`: its task is about to be made. False: it was cancelled before."""
        cdef bint pending
        ur_guard_lock(&self.guard)
        pending = self.state == OUTCOME_PENDING
        if pending:
            ur_store_flag(&self.state, OUTCOME_RUNNING)
            self.loop = loop
        ur_guard_unlock(&self.guard)
        return pending

    cdef bint settle(self, OutcomeState state, object value, object error, OutcomeState highest_state) except -1:
        """From whichever thread knows. False: it was settled before, or is beyond the state `highest_state`."""
        cdef object loop = None
        cdef object traceback = None if error is None else error.__traceback__
        ur_guard_lock(&self.guard)
        if self.state > <int> highest_state:
            ur_guard_unlock(&self.guard)
            return False
        self.value = value      # they were None: nothing dies under the guard
        self.error = error
        self.traceback = traceback
        loop, self.loop = self.loop, None
        ur_store_flag(&self.state, state)
        try:
            self.unlock_and_grant_all()
            self.announce()
        finally:  # whatever a callback raises: who counts jobs must see this one end
            if self._intake is not None:
                self._intake.settled(self)
            self._owner._settled()
        return True

    def _begin_without_a_task(self):
        """A thread runs it; nobody can ask it to end. False: it was cancelled before."""
        return self.set_running(None)

    def _settle_by(self, task):
        """The task's done callback."""
        try:
            value = task.result()
        except CancelledError:
            self.settle(OUTCOME_CANCELLED, None, None, OUTCOME_RUNNING)
        except BaseException as error:
            self.settle(OUTCOME_FAILED, None, error, OUTCOME_RUNNING)
        else:
            self.settle(OUTCOME_DONE, value, None, OUTCOME_RUNNING)
        finally:
            self.task = None  # here alone: other threads may settle, but only this one looks at the task

    def _raised(self, error):
        """On its context's thread: has its task ended with this exception? It is settled in the loop's next turn."""
        task = self.task
        return task is not None and task.done() and not task.cancelled() and task.exception() is error

    def _settle(self, value, error):
        """Done without a task."""
        return self.settle(OUTCOME_DONE if error is None else OUTCOME_FAILED, value, error, OUTCOME_RUNNING)

    def _break_off(self, error):
        """On the thread of its context, which died. What has just ended, and brought that about for one, says so itself."""
        if self.task is None or not self.task.done():
            self._settle(None, error)

    cdef int announce(self) except -1:
        """Tell those who asked in concurrent.futures' way."""
        cdef list callbacks
        ur_guard_lock(&self.guard)
        callbacks, self.callbacks = self.callbacks, None
        condition = self.condition  # who makes one from now on finds the state settled
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
            _call(callback, self)
        return 0

    # Waiting for it

    cdef bint try_acquire(self) noexcept:
        return ur_load_flag(&self.state) > OUTCOME_RUNNING

    cdef object collect(self, object value):
        if value is _THREAD:
            return None  # which looks itself
        if ur_load_flag(&self.state) == OUTCOME_FAILED and isinstance(self.error, (SystemExit, KeyboardInterrupt)):
            # Raised in a task, it would end this loop as well.
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
        """From a plain thread, or anywhere once it is done."""
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

    # Asking

    def done(self):
        return ur_load_flag(&self.state) > OUTCOME_RUNNING

    def cancelled(self):
        return ur_load_flag(&self.state) == OUTCOME_CANCELLED

    def running(self):
        return ur_load_flag(&self.state) == OUTCOME_RUNNING

    def add_done_callback(self, callback):
        """Called with the job once it is settled, in the thread that settles it, or now."""
        cdef list callbacks
        ur_guard_lock(&self.guard)
        callbacks = self.callbacks
        if callbacks is not None:
            callbacks.append(callback)
        ur_guard_unlock(&self.guard)
        if callbacks is None:
            _call(callback, self)

    def cancel(self, message=None):
        """From anywhere. Not started, it never will; running, its task is asked to end. False: it was done."""
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
            return False  # closed, which settles what ran on it
        return True

    def _cancel_task(self, message):
        if self.task is not None:
            self.task.cancel(message)

    def _get_snapshot(self):
        """How asyncio.wrap_future asks since Python 3.15: done, cancelled, result, exception."""
        if not self.try_acquire():
            return False, False, None, None
        ur_store_flag(&self.looked, True)
        return True, ur_load_flag(&self.state) == OUTCOME_CANCELLED, self.value, self.error

    # What concurrent.futures.wait() and as_completed() look at

    @property
    def _state(self):
        """They look with the condition, and add themselves to those that are told: one or the other, never both."""
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
        if ur_load_flag(&self.state) == OUTCOME_FAILED and not ur_load_flag(&self.looked):
            logger.error("Exception of %r was never retrieved", self, exc_info=self.error)


cdef int _call(callback, Outcome outcome) except -1:
    try:
        callback(outcome)
    except Exception:
        logger.exception("Exception calling %r of %r", callback, outcome)
    return 0
