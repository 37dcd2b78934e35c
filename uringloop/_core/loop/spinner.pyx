# Spinner: the decision to poll for a few microseconds before the thread sleeps, and the polling. Waking a sleeping core
# costs 20 to 50 us, so two threads that call each other in turn spend most of their time on that. Owns the record of
# successes, because spinning must pay: a spin in vain costs more credit than a success earns, and a thread without credit
# doesn't spin, so an idle loop sleeps. Calls from other threads and I/O have a credit each. Calls need no option; for I/O
# the thread spins only if `busy_poll` is set, and for no longer than that.
#
# Between polls it yields the core to the thread that may answer. On a crowded machine, an unrelated thread gets the core
# instead, for a whole time slice; and the kernel's scheduler, which lets a thread that slept run as soon as it is woken,
# no longer prefers a thread that spins. So a yield that takes long ends the spin, and the thread doesn't spin for a while. That
# pause becomes longer if the machine is still crowded after it.
from libc.stdint cimport int64_t

from uringloop._core.engine.engine cimport Engine
from uringloop._core.kernel.abi cimport ur_cpu_relax, ur_now_ns
from uringloop._core.loop.inbox cimport Inbox
from uringloop._core.lifetime.guard cimport UR_FREE_THREADED, ur_load_flag, ur_load_int, ur_store_flag, ur_store_int

cdef extern from "<sched.h>" nogil:
    int sched_yield()

cdef enum:
    WAKE_WINDOW_NS = 80000    # enough for the answer of a thread that has to be woken itself, and some Python
    WAKING_NS = 50000         # the part of the measured sleep that waking up may have taken
    MOST_CREDIT = 8
    GIL_WINDOW_NS = 20000     # enough for the end of the turn in which the other thread submitted its call
    CROWDED_NS = 300000       # a thread that answers yields the core sooner, and every time slice is longer
    FIRST_PAUSE_NS = 5000000  # a short burst of another program, as there is on any machine, is over by then
    AGAIN_NS = 20000000       # crowded again so soon after a pause: the burst was not over
    LONGEST_PAUSE_NS = 6400000000


# Whether a loop of this process holds the GIL; a hint, written by the loop that holds it.
cdef int _busy = 0


cdef class Spinner:
    def __init__(self, double busy_poll):
        self.busy_poll_ns = <int64_t> (busy_poll * 1e9)
        self.pause_ns = FIRST_PAUSE_NS

    def __repr__(self):
        return f"<Spinner {self.hits} of {self.spins} spins found something>"

    cdef int64_t window_ns(self) noexcept:
        """How long to spin now; 0 to sleep at once."""
        cdef int64_t window = WAKE_WINDOW_NS if self.wake_credit > 0 else 0
        if self.io_credit > 0 and self.busy_poll_ns > window:
            window = self.busy_poll_ns
        return window

    cdef bint spin(self, Engine engine, Inbox inbox, int64_t deadline_ns) except -1:
        """Poll until there is something to do, or the window or the deadline ends. Return whether there is something."""
        cdef int64_t now = ur_now_ns(), looked = now
        cdef int64_t end = min(now + self.window_ns(), deadline_ns)
        cdef bint io = False, woken = False, crowded = False
        cdef int i
        self.spins += 1
        ur_store_int(&_busy, False)
        ur_store_flag(&self.spinning, True)
        with nogil:
            while True:
                for i in range(16):
                    woken = ur_load_flag(&inbox.filled)
                    io = engine.peek()
                    if io or woken:
                        break
                    ur_cpu_relax()
                now = ur_now_ns()
                crowded = now - looked > CROWDED_NS
                if io or woken or crowded or now >= end:
                    break
                looked = now
                sched_yield()  # with more threads than cores, the thread that answers may need this core
            if woken and not crowded and not UR_FREE_THREADED:
                # The thread that submitted the call is about to release the GIL. Requesting it now would mean sleeping.
                end = now + GIL_WINDOW_NS
                while ur_load_int(&_busy) and now < end:
                    looked = now
                    sched_yield()
                    now = ur_now_ns()
                    crowded = now - looked > CROWDED_NS
        ur_store_flag(&self.spinning, False)
        if crowded:
            self.pause(looked, now)
        ur_store_int(&_busy, True)
        self.hits += io or woken
        self.was_woken = woken
        if crowded:
            return io or woken
        # An I/O event says nothing about calls from other threads, and vice versa.
        if self.wake_credit > 0 and not io:
            self.wake_credit = min(self.wake_credit + 1, MOST_CREDIT) if woken else self.wake_credit - 2
        if self.io_credit > 0 and not woken:
            self.io_credit = min(self.io_credit + 1, MOST_CREDIT) if io else self.io_credit - 2
        return io or woken

    cdef void pause(self, int64_t since, int64_t now) noexcept:
        """The machine is crowded: a yield took from `since` to `now`. Don't spin for a while."""
        if self.paused_at and since - self.paused_at - self.pause_ns < <int64_t> AGAIN_NS:
            self.pause_ns = min(4 * self.pause_ns, <int64_t> LONGEST_PAUSE_NS)
        else:
            self.pause_ns = FIRST_PAUSE_NS
        self.paused_at = now
        self.wake_credit = self.io_credit = 0

    cdef int64_t asleep(self) noexcept:
        """The thread is about to sleep. Return the time, if the length of the sleep matters; otherwise 0."""
        ur_store_int(&_busy, False)
        return ur_now_ns() if self.busy_poll_ns or self.was_woken else 0

    cdef void awake(self, int64_t since, bint woken) noexcept:
        """The thread woke up: earn credit if a spin would have found what ended the sleep."""
        cdef int64_t now, took
        ur_store_int(&_busy, True)
        self.was_woken = woken
        if not since:
            return
        now = ur_now_ns()
        if self.paused_at and now - self.paused_at < self.pause_ns:
            return
        took = now - since - WAKING_NS
        if woken:
            self.wake_credit = min(max(self.wake_credit, 0) + 1, MOST_CREDIT) if took < <int64_t> WAKE_WINDOW_NS else 0
        elif self.busy_poll_ns:
            self.io_credit = min(max(self.io_credit, 0) + 1, MOST_CREDIT) if took < self.busy_poll_ns else 0
