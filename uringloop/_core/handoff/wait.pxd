from uringloop._core.handoff.waitlist cimport Waitlist


cdef class Entry:
    cdef Waitlist line     # never changes
    cdef object value      # never changes


cdef class Wait(Entry):
    cdef object iterator   # of the task that awaits it
    cdef bint begun        # awaited, or ended before that

    cdef int begin(self) except -1


cdef Entry make_entry(Waitlist line, object value)
cdef Wait make_wait(Waitlist line, object value)
