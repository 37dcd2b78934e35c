# Idler: what a loop asks before it sleeps, whether there is something to do elsewhere. Owns nothing; the scheduler's
# intake is one, which takes over jobs that wait behind a busy context.


cdef class Idler(Runnable):
    cdef bint schedule_stealing(self) except -1:
        """On the loop's thread, which already counts as asleep: who brings work from now on wakes it. True: something
        is ready now."""
        return False
