# How the primitives describe themselves.
from uringloop._core.handoff.waitlist cimport Waitlist

cdef str title(object primitive, str name)
cdef str queued(Waitlist line)
cdef dict named(Waitlist line, dict counts)
