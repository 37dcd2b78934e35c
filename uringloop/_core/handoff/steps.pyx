# Steps: drives an inbox, or the line of a primitive, one guarded step at a time, so that a test can interleave the steps
# of several threads in every order. Debug builds only. Each step runs the real code; nothing here is used by programs.
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
    """The steps that a loop's own thread and other threads take on an inbox. The kernel's sleep ends once a wake was
    written."""

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
        """The sleep ends: returns how many wakes were written."""
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
    """The steps of a primitive's line: each operation is split where it unlocks the guard."""

    def __cinit__(self, Waitlist line not None):
        self.line = line

    def enter(self):
        """A plain thread comes. True: it took what it came for. Otherwise returns its waiter, which is in the line."""
        cdef Waiter waiter = thread_waiter(self.line, True)
        cdef WaiterState state
        ur_guard_lock(&self.line.guard)
        state = self.line.enter(waiter)
        ur_guard_unlock(&self.line.guard)
        return True if state == WAITER_GRANTED else waiter

    def woken(self, Waiter waiter):
        return not waiter.thread_lock.locked()

    def leave(self, Waiter waiter):
        """The thread resumes, because it was woken or timed out. True: it was granted what it waited for."""
        return sleep_in_line(self.line, waiter, 0) is not TIMED_OUT

    def pick(self):
        """The first half of a release: returns the waiter that was granted it, or None."""
        cdef bint more
        cdef PyObject *chosen = grant_next(self.line, &more)
        if chosen is NULL:
            return None
        waiter = <Waiter> chosen
        return waiter  # and `deliver` takes over the line's reference

    def deliver(self, Waiter waiter):
        """The second half of a release. False: the waiter cannot be woken, and the release starts again."""
        return deliver(<PyObject *> waiter)
