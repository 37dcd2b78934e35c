# Wait times: when each waiter began to wait, for reports. Recorded from the first time on that a loop is in debug mode or
# that the process opens an inspector; before that it costs no look at the clock. Owns the one switch of the process.
from uringloop._core.kernel.abi cimport ur_now_ns
from uringloop._core.lifetime.guard cimport ur_load_int, ur_store_int

cdef int _recorded = False


cdef int64_t now_if_recorded() noexcept:
    """Nanoseconds of the monotonic clock; 0 while waits are not recorded."""
    return ur_now_ns() if ur_load_int(&_recorded) else 0


def record_wait_times():
    """Record when waiters begin to wait, from now on."""
    ur_store_int(&_recorded, True)
