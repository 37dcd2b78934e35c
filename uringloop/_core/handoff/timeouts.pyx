# Timeouts: how long a plain thread is ready to wait. Owns the rule what a timeout is; waits for nothing itself.
import _thread

cdef double _LONGEST = _thread.TIMEOUT_MAX


cdef double timeout_seconds(object timeout) except? -2:
    """Seconds, as a thread's lock takes them: -1 for ever (None, or more than a clock counts), 0 what is past. To be
    asked before anything is taken: what is no number of seconds raises."""
    cdef double seconds
    if timeout is None:
        return -1
    if isinstance(timeout, bool) or isinstance(timeout, (str, bytes, bytearray)):
        # True is a number, but who passes it means `blocking`; and float() would read a string.
        raise TypeError(f"timeout is a number of seconds or None, not {timeout!r}")
    try:
        seconds = float(timeout)
    except OverflowError:
        seconds = _LONGEST if timeout > 0 else 0
    except TypeError:
        raise TypeError(f"timeout is a number of seconds or None, not {timeout!r}") from None
    if seconds != seconds:
        raise ValueError("timeout is not a number")
    return min(max(seconds, 0), _LONGEST)


def optional_seconds(timeout):
    """The same for callers in Python: None for ever."""
    cdef double found = timeout_seconds(timeout)
    return None if found < 0 else found
