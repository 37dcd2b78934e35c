# How the primitives describe themselves: their names, and how long the first in line has waited, in reprs and statistics.
# Never changes a primitive.
from libc.stdint cimport int64_t

from uringloop._core.handoff.waitlist cimport Waiter, Waitlist
from uringloop._core.kernel.abi cimport ur_now_ns
from uringloop._core.lifetime.guard cimport ur_guard_lock, ur_guard_unlock


cdef str title(object primitive, str name):
    """The class, and the name if the program gave one."""
    return type(primitive).__name__ if name is None else f"{type(primitive).__name__} {name!r}"


cdef int64_t _longest_ns(Waitlist line) noexcept:
    """How long the first in line has waited; 0 if that was not recorded."""
    cdef int64_t since = 0
    ur_guard_lock(&line.guard)
    if line.head is not NULL:
        since = (<Waiter> line.head).since_ns
    ur_guard_unlock(&line.guard)
    return ur_now_ns() - since if since else 0


cdef str queued(Waitlist line):
    """How many wait, and for how long, if that is known."""
    cdef int64_t longest = _longest_ns(line)
    return f"waiting={line.waiting} for {longest / 1e9:.1f} s" if longest else f"waiting={line.waiting}"


cdef dict named(Waitlist line, dict counts):
    """The line's counts after those of the primitive, with its name and the longest wait, where these are known."""
    cdef int64_t longest = _longest_ns(line)
    counts.update(line.counts())
    if line.name is not None:
        counts["name"] = line.name
    if longest:
        counts["longest_wait"] = longest / 1e9
    return counts


def described(Waitlist line, primitive, str state):
    """The repr of a primitive in Python, which has this line."""
    return f"<{title(primitive, line.name)} {state} {queued(line)}>"
