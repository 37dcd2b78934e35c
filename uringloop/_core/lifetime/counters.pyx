# Counters of what the core has made and freed: ops, handles, timers, buffers, transports, fixed buffers, and descriptors
# that it opens itself. Only debug builds count, and the teardown of every test checks that as many were freed as made.
# Decides nothing.
from uringloop._core.lifetime.guard cimport URINGLOOP_DEBUG, ur_add_long, ur_load_long

cdef long _made[<int> COUNTED_KINDS]
cdef long _freed[<int> COUNTED_KINDS]

_NAMES = ("op", "handle", "timer", "buffer", "fd", "transport", "fixed")

DEBUG_BUILD = bool(URINGLOOP_DEBUG)


cdef void count_made(Counted kind) noexcept nogil:
    ur_add_long(&_made[<int> kind], 1)


cdef void count_freed(Counted kind) noexcept nogil:
    ur_add_long(&_freed[<int> kind], 1)


def counters():
    """How many of each kind were made and freed since the process began, as {kind: (made, freed)}; zeros in a release build."""
    return {name: (ur_load_long(&_made[i]), ur_load_long(&_freed[i])) for i, name in enumerate(_NAMES)}
