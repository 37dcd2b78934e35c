from uringloop._core.handoff.waitlist cimport Waiter, Waitlist

cdef object TIMED_OUT
cdef object block(Waitlist line, object value, object timeout)
cdef object sleep_in_line(Waitlist line, Waiter waiter, double seconds)
cdef int not_in_a_loop(str what, str instead) except -1
