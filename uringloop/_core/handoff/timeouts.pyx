# Timeouts: checks and converts the timeouts that callers pass, before a plain thread waits. Waits for nothing itself.
import _thread

cdef double _LONGEST = _thread.TIMEOUT_MAX


cdef double timeout_seconds(object timeout) except? -2:
    """The timeout in seconds, as a thread's lock takes it: None gives -1, which waits for ever; a negative one gives 0; one
    longer than a lock can wait gives the longest. Call it before taking anything: it raises for what is not a number."""
    cdef double seconds
    if timeout is None:
        return -1
    if isinstance(timeout, bool) or isinstance(timeout, (str, bytes, bytearray)):
        # True is a number, but a caller that passes it means `blocking`; and float() would parse a string.
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
    """The same for callers in Python: None means no limit."""
    cdef double found = timeout_seconds(timeout)
    return None if found < 0 else found
