# thread_wait: lets a plain thread wait in a line: the thread sleeps on a lock of its own until its waiter is woken. Owns
# nothing: the line owns the waiter, and the waiter owns that lock.
from cpython.ref cimport Py_DECREF

from asyncio.events import _get_running_loop as _running_loop

from uringloop._core.lifetime.guard cimport ur_guard_lock, ur_guard_unlock
from uringloop._core.handoff.timeouts cimport timeout_seconds
from uringloop._core.handoff.waitlist cimport (
    WAITER_DONE, WAITER_FAILED, WAITER_GRANTED, Waiter, WaiterState, Waitlist, thread_waiter,
)

cdef object TIMED_OUT = object()


cdef object block(Waitlist line, object value, object timeout):
    """Does for a plain thread what `start` of the line does for a task. Returns TIMED_OUT after `timeout` seconds; with
    None it waits without a limit."""
    cdef double seconds = timeout_seconds(timeout)
    cdef Waiter waiter = thread_waiter(line, value)
    cdef WaiterState state
    ur_guard_lock(&line.guard)
    state = line.enter(waiter)
    ur_guard_unlock(&line.guard)
    if state == WAITER_FAILED:
        raise line.refusal
    return line.collect(value) if state == WAITER_GRANTED else sleep_in_line(line, waiter, seconds)


cdef object sleep_in_line(Waitlist line, Waiter waiter, double seconds):
    """Sleep until the thread's waiter, which is in the line already, is woken. `seconds` comes from timeout_seconds."""
    cdef WaiterState state
    cdef bint waiting
    try:
        waiter.thread_lock.acquire(True, seconds)
    except BaseException:  # raised by a signal handler
        if waiter.abandon():
            line.hand_on()
        raise
    ur_guard_lock(&line.guard)
    waiting = line.withdraw(waiter)
    state = waiter.state
    if state == WAITER_GRANTED:
        waiter.state = WAITER_DONE
    ur_guard_unlock(&line.guard)
    if state == WAITER_GRANTED:
        return line.collect(waiter.value)
    if waiting:
        Py_DECREF(waiter)
        return TIMED_OUT
    return waiter.result()


cdef int not_in_a_loop(str what, str instead) except -1:
    """Raise if this thread runs a loop. It must not sleep on a lock: the lock's holder may need this very loop to release
    it."""
    if _running_loop() is not None:
        raise RuntimeError(f"{what} would block the event loop that this thread runs: use {instead}")
    return 0
