# Flow control of writing, for the transports of every kind, TLS among them: the water marks of a write buffer, and the calls
# of pause_writing and resume_writing. Owns nothing, and decides nothing: a transport compares its buffer with the marks.
import math

from uringloop._core.loop.loop cimport Loop
from uringloop._core.transport.reports cimport report

cdef extern from "Python.h":
    Py_ssize_t PY_SSIZE_T_MAX


cdef tuple water_marks(high, low, Py_ssize_t default):
    """The water marks (low, high), by asyncio's rules, which allow any numbers."""
    if high is None:
        high = default if low is None else 4 * low
    if low is None:
        low = high // 4
    if not high >= low >= 0:
        raise ValueError(f"high ({high!r}) must be >= low ({low!r}) must be >= 0")
    return low, high


cdef Py_ssize_t bytes_within(object mark) except -1:
    """The largest number of bytes that is not above the mark."""
    return PY_SSIZE_T_MAX if mark >= PY_SSIZE_T_MAX else math.floor(mark)


cdef Py_ssize_t bytes_reaching(object mark) except -1:
    """The smallest number of bytes that reaches the mark."""
    return PY_SSIZE_T_MAX if mark >= PY_SSIZE_T_MAX else math.ceil(mark)


cdef int tell_flow(Loop loop, object called, bint pause, object transport, object protocol) except -1:
    """Call pause_writing() or resume_writing() of `called`. Its exception is reported as one of `transport` and `protocol`."""
    cdef str name = "pause_writing" if pause else "resume_writing"
    try:
        getattr(called, name)()
    except (SystemExit, KeyboardInterrupt):
        raise
    except BaseException as error:
        report(loop, error, f"protocol.{name}() failed", transport, protocol)
    return 0
