from uringloop._core.handoff.waitlist cimport Waitlist


cdef class Entry:
    cdef Waitlist line     # never changes
    cdef object value      # never changes


cdef class Wait(Entry):
    cdef object iterator   # of the task that awaits it, from the line's `start`
    cdef bint begun        # it was awaited, or was closed or thrown into before that

    cdef int begin(self) except -1


cdef Entry make_entry(Waitlist line, object value)
cdef Wait make_wait(Waitlist line, object value)
