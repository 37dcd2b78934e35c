# Reports: how the transports of every kind, TLS among them, tell of errors that no caller gets. Errors go to the loop's
# exception handler, failures of the network only to the debug log, and writes to a lost connection to the log. Owns nothing,
# and ends no connection.
from asyncio import constants
from asyncio.log import logger

from uringloop._core.loop.loop cimport Loop

cdef int LOG_THRESHOLD = constants.LOG_THRESHOLD_FOR_CONNLOST_WRITES


cdef int report(Loop loop, object error, str message, object transport, object protocol) except -1:
    """Call the loop's exception handler, with the context that asyncio's transports give."""
    (<object> loop).call_exception_handler(
        {"message": message, "exception": error, "transport": transport, "protocol": protocol}
    )
    return 0


cdef int report_fatal(Loop loop, object error, str message, object transport, object protocol, object logged) except -1:
    """Report an error that ends the connection of `logged`. Networks fail every day: an OSError is for the debug log."""
    if not isinstance(error, OSError):
        return report(loop, error, message, transport, protocol)
    if loop is not None and loop._debug:
        logger.debug("%r: %s", logged, message, exc_info=error)
    return 0


cdef long count_late_write(long before, str warning) except -1:
    """A write to a lost connection is dropped: log it from the fifth on, as asyncio does. Return the count after it."""
    if before >= LOG_THRESHOLD:
        logger.warning(warning)
    return before + 1
