# Steps: an inbox, and the line of a primitive, taken one guarded step at a time, so that a test can play what several
# threads do in every order. Debug builds only. Owns nothing that a program uses; the steps are those of the real code.
import os
import select

from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF

from uringloop._core.engine.engine cimport Engine
from uringloop._core.engine.ready_queue cimport ReadyQueue, Runnable, ready_pop, ready_push
from uringloop._core.loop.inbox cimport Inbox
from uringloop._core.lifetime.guard cimport ur_guard_lock, ur_guard_unlock, ur_load_flag
from uringloop._core.handoff.thread_wait cimport TIMED_OUT, sleep_in_line
from uringloop._core.handoff.waitlist cimport (
    WAITER_GRANTED, Waiter, WaiterState, Waitlist, deliver, grant_next, thread_waiter,
)


cdef class Numbered(Runnable):
    cdef int run(self, object loop) except -1:
        return 0


cdef class InboxSteps:
    """What a loop's thread and others do to an inbox. `sleep` is the kernel's: it ends once a wake was written."""

    def __cinit__(self):
        self.ready = ReadyQueue()
        self.engine = Engine(self.ready)
        self.inbox = Inbox(self.engine)

    def try_push(self, number):
        return self.inbox.try_push(_numbered(number))

    def try_push_all(self, numbers):
        cdef ReadyQueue nodes = ReadyQueue()
        for number in numbers:
            ready_push(nodes, _numbered(number))
        return self.inbox.try_push_all(nodes)

    def filled(self):
        return ur_load_flag(&self.inbox.filled) != 0

    def take(self):
        cdef PyObject *node
        found = []
        self.inbox.take(self.ready)
        while self.ready.head is not NULL:
            node = ready_pop(self.ready)
            found.append((<Numbered> node).number)
            Py_DECREF(<object> node)
        return found

    def fall_asleep(self):
        return self.inbox.fall_asleep()

    def woken(self):
        """Would the kernel's sleep end?"""
        return bool(select.select([self.engine.wake_fd], [], [], 0)[0])

    def end_sleep(self):
        """It ends, having read how often it was woken."""
        return os.eventfd_read(self.engine.wake_fd)

    def wake_up(self):
        self.inbox.woke_up()

    def close(self):
        self.inbox.close()

    @property
    def wakes(self):
        return self.engine.wakes


cdef Numbered _numbered(number):
    cdef Numbered made = Numbered.__new__(Numbered)
    made.number = number
    return made


cdef class LineSteps:
    """A primitive's own line, each of whose operations is split where its guard is let go."""

    def __cinit__(self, Waitlist line not None):
        self.line = line

    def enter(self):
        """A plain thread: True, it has it; or its waiter."""
        cdef Waiter waiter = thread_waiter(self.line, True)
        cdef WaiterState state
        ur_guard_lock(&self.line.guard)
        state = self.line.enter(waiter)
        ur_guard_unlock(&self.line.guard)
        return True if state == WAITER_GRANTED else waiter

    def woken(self, Waiter waiter):
        return not waiter.thread_lock.locked()

    def leave(self, Waiter waiter):
        """The thread goes on, woken or because its time is over: does it have it?"""
        return sleep_in_line(self.line, waiter, 0) is not TIMED_OUT

    def pick(self):
        """The first half of a release: who has it next; None: nobody."""
        cdef bint more
        cdef PyObject *chosen = grant_next(self.line, &more)
        if chosen is NULL:
            return None
        waiter = <Waiter> chosen
        return waiter  # the line's reference is `deliver`'s

    def deliver(self, Waiter waiter):
        """The second half. False: it can not be woken, and the release begins anew."""
        return deliver(<PyObject *> waiter)
