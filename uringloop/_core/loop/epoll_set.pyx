# EpollSet: the epoll set of the descriptors watched by add_reader and add_writer. The loop waits for the set as it waits for
# a socket. One operation per turn reports all ready descriptors, however many are watched; the kernel reports them
# level-triggered, like asyncio's selectors; and closing a descriptor ends its watch, because epoll, unlike a poll in the ring,
# doesn't keep the file open.
#
# Owns the epoll descriptor, the table of registrations, and the array that the kernel fills with events. Puts handles into
# the loop's ready queue, and never calls one.
import os

from cpython.object cimport PyObject, traverseproc, visitproc
from libc.stdint cimport uint32_t, uint64_t, uintptr_t

from uringloop._core.engine.engine cimport forks
from uringloop._core.engine.op cimport NEED_READ, OP_IDLE, Op
from uringloop._core.engine.ready_queue cimport ready_push
from uringloop._core.kernel.abi cimport IORING_OP_EPOLL_WAIT, IORING_OP_POLL_ADD, io_uring_sqe
from uringloop._core.kernel.libc cimport (
    EAGAIN, EBADF, EEXIST, ENOENT, EPOLLIN, EPOLLOUT, EPOLL_CLOEXEC, EPOLL_CTL_ADD, EPOLL_CTL_DEL, EPOLL_CTL_MOD,
    POLLIN, c_close, epoll_create1, epoll_ctl, epoll_event, epoll_wait, errno,
)
from uringloop._core.kernel.probe cimport kernel_features
from uringloop._core.loop.handle cimport Handle
from uringloop._core.loop.loop cimport Loop
from uringloop._core.lifetime.counters cimport COUNT_FD, count_freed, count_made
from uringloop._core.lifetime.guard cimport (
    URINGLOOP_DEBUG, ur_get_traverse, ur_only_core_makes, ur_python_makes, ur_set_traverse, ur_visit_owned,
)


cdef class Registration:
    pass


cdef class EpollSet(Op):
    def __cinit__(self, Loop loop not None):
        self.loop = loop
        self.engine = loop.engine
        self.need = NEED_READ
        self.repeatable = True
        self.registrations = {}
        self.slots = []
        self.free_slots = []
        self.forks = forks
        self.uses_epoll_wait = self.engine.has_ring and kernel_features().epoll_wait
        self.fd = epoll_create1(EPOLL_CLOEXEC)
        if self.fd < 0:
            raise OSError(errno, os.strerror(errno))
        if URINGLOOP_DEBUG:
            count_made(COUNT_FD)

    def __dealloc__(self):
        # The kernel's reference is gone, so no operation on the set is in the kernel.
        if self.fd >= 0:
            c_close(self.fd)
            if URINGLOOP_DEBUG:
                count_freed(COUNT_FD)

    # Registrations

    def add(self, int fd, bint write, Handle handle not None):
        """Watch the descriptor. Return the handle that was registered for it before, or None. Raises epoll_ctl's OSError."""
        cdef Registration registration = self.registrations.get(fd)
        cdef uint32_t event = EPOLLOUT if write else EPOLLIN
        cdef int err
        if self.forks != forks:
            self.renew()
        if registration is None:
            registration = Registration.__new__(Registration)
            registration.fd = fd
            registration.slot = <uint32_t> (self.free_slots.pop() if self.free_slots else len(self.slots))
            if registration.slot == <uint32_t> len(self.slots):
                self.slots.append(None)
        # Call epoll_ctl even if nothing seems to change: epoll watches files, and the number may belong to another file
        # by now. It may even belong to the set itself, if the program closed the descriptor before the set was made.
        err = EBADF if fd == self.fd else self.enrol(registration, registration.events | event)
        if err:
            if not registration.events:
                self.free_slots.append(registration.slot)
            raise OSError(err, os.strerror(err))
        self.registrations[fd] = self.slots[registration.slot] = registration
        if write:
            handle, registration.writer = registration.writer, handle
        else:
            handle, registration.reader = registration.reader, handle
        self.submit_at_turn_end()
        return handle

    def remove(self, int fd, bint write):
        """Stop watching. Return the handle, which the caller cancels, or None if there was none."""
        cdef Registration registration = self.registrations.get(fd)
        cdef object handle
        if registration is None:
            return None
        if self.forks != forks:
            self.renew()
        if write:
            handle, registration.writer = registration.writer, None
        else:
            handle, registration.reader = registration.reader, None
        if handle is not None:
            self.drop(registration, EPOLLOUT if write else EPOLLIN)
        return handle

    cdef int enrol(self, Registration registration, uint32_t events) noexcept:
        """Make the kernel watch the descriptor for all of `events`; return 0, or the errno."""
        cdef epoll_event event
        cdef int err = ENOENT
        event.events = events
        event.data.u64 = <uint64_t> registration.serial << 32 | registration.slot
        if registration.events:
            err = 0 if epoll_ctl(self.fd, EPOLL_CTL_MOD, registration.fd, &event) == 0 else errno
        if err == ENOENT:
            self.serial += 1
            event.data.u64 = <uint64_t> self.serial << 32 | registration.slot
            err = 0 if epoll_ctl(self.fd, EPOLL_CTL_ADD, registration.fd, &event) == 0 else errno
            if err == EEXIST:  # an old registration could not be deleted, because the number was closed at that moment
                err = 0 if epoll_ctl(self.fd, EPOLL_CTL_MOD, registration.fd, &event) == 0 else errno
            if not err:
                registration.serial = self.serial
        if not err:
            registration.events = events
        return err

    cdef int drop(self, Registration registration, uint32_t events) except -1:
        """Stop watching for these events. Ignores errors: if the program has closed the descriptor, the kernel has already
        dropped it."""
        cdef epoll_event event
        registration.events &= ~events
        if registration.events:
            event.events = registration.events
            event.data.u64 = <uint64_t> registration.serial << 32 | registration.slot
            epoll_ctl(self.fd, EPOLL_CTL_MOD, registration.fd, &event)
            return 0
        epoll_ctl(self.fd, EPOLL_CTL_DEL, registration.fd, &event)
        del self.registrations[registration.fd]
        self.slots[registration.slot] = None
        self.free_slots.append(registration.slot)
        return 0

    cdef int renew(self) except -1:
        """Replace the epoll set by a new one, with the files that are still watched.

        That is needed in a forked child, which shares its parent's set, and when a file stays in the set whose descriptor
        was closed while a duplicate is open: without its number the kernel can't be told to drop it, and it would end every
        wait."""
        cdef Registration registration
        cdef epoll_event event
        cdef bint inherited = self.forks != forks
        cdef int fd = epoll_create1(EPOLL_CLOEXEC)
        if fd < 0:
            if inherited:
                raise OSError(errno, os.strerror(errno))
            return 0  # out of descriptors; the next such event tries again
        for registration in self.registrations.values():
            event.events = registration.events
            event.data.u64 = <uint64_t> registration.serial << 32 | registration.slot
            # The number may belong to another file: watch it only if the old set knows it. Never change the parent's set.
            if inherited or epoll_ctl(self.fd, EPOLL_CTL_MOD, registration.fd, &event) == 0:
                epoll_ctl(fd, EPOLL_CTL_ADD, registration.fd, &event)
        if inherited:
            # Keep the number, which the engine knows and will submit again.
            try:
                os.dup2(fd, self.fd, False)
            finally:
                c_close(fd)
        else:
            c_close(self.fd)
            self.fd = fd
        self.forks = forks
        self.stale = False
        return 0

    # Waiting for the set

    cdef int submit_at_turn_end(self) except -1:
        """Submit the wait for the set at the end of this turn. Not before: the kernel must not collect events for data that
        this turn's callbacks are about to read."""
        if self.state == OP_IDLE and not self.queued:
            self.awaits_turn_end = True
            ready_push(self.loop.turn_end_queue, self)
        return 0

    cdef int run(self, object loop) except -1:
        if self.engine.closed:
            return 0
        if not self.awaits_turn_end:
            return self.submit_at_turn_end()
        if self.loop._stopping and not self.loop.starting:
            # Leave it to the next run: between the runs, the program may handle what the kernel would report.
            ready_push(self.loop.turn_end_queue, self)
            return 0
        self.awaits_turn_end = False
        if self.stale or self.forks != forks:
            self.renew()
        self.engine.submit(self)
        return 0

    cdef int after_fork_in_child(self) except -1:
        if self.forks != forks:
            self.renew()
        return 0

    cdef void fill(self, io_uring_sqe *sqe) noexcept:
        sqe.fd = self.fd
        if self.uses_epoll_wait:
            sqe.opcode = IORING_OP_EPOLL_WAIT
            sqe.addr = <uint64_t> <uintptr_t> self.found
            sqe.len = EVENTS_A_TURN
        else:
            sqe.opcode = IORING_OP_POLL_ADD
            sqe.poll32_events = POLLIN

    cdef int attempt(self, uint32_t *flags) noexcept:
        cdef int count = epoll_wait(self.fd, self.found, EVENTS_A_TURN, 0)
        if count < 0:
            return -errno
        self.attempted = self.loop.turns
        return count if count else -EAGAIN

    cdef void record_completion(self, int res, uint32_t flags) noexcept:
        cdef int i
        if res <= 0:
            return
        if self.engine.collected_early:
            # Callbacks of this turn, or the program between two runs, may have read the data. Drop these events, and collect
            # again at the end of the turn.
            self.awaits_turn_end = True
            ready_push(self.loop.turn_end_queue, self)
            return
        if not self.uses_epoll_wait and self.attempted != self.loop.turns:
            res = epoll_wait(self.fd, self.found, EVENTS_A_TURN, 0)
        for i in range(min(res, EVENTS_A_TURN)):
            self.dispatch_event(&self.found[i])

    cdef int dispatch_event(self, epoll_event *event) noexcept:
        """Queue the handles of a ready descriptor. An error or a hang-up wakes reader and writer, as in asyncio's selectors."""
        cdef uint32_t slot = <uint32_t> event.data.u64
        cdef Registration registration = None
        if slot < <uint32_t> len(self.slots):
            registration = self.slots[slot]
        if registration is None or registration.serial != event.data.u64 >> 32:
            self.stale = True
            return 0
        if event.events & ~<uint32_t> EPOLLOUT and registration.reader is not None:
            self.push(registration.reader)
        if event.events & ~<uint32_t> EPOLLIN and registration.writer is not None:
            self.push(registration.writer)
        return 0

    cdef int push(self, object handle) noexcept:
        if not (<Handle> handle).queued:
            ready_push(self.loop.ready, <Handle> handle)
        return 0


cdef traverseproc _traverse_registration = ur_get_traverse(Registration)


cdef int _traverse(PyObject *self, visitproc visit, void *arg) noexcept:
    # The collector doesn't know handles: their owner shows it what they refer to.
    cdef int result = ur_visit_owned(<PyObject *> (<Registration> self).reader, visit, arg)
    result = result or ur_visit_owned(<PyObject *> (<Registration> self).writer, visit, arg)
    return result or _traverse_registration(self, visit, arg)


ur_set_traverse(Registration, <traverseproc> _traverse)
ur_only_core_makes(Registration)
ur_python_makes(EpollSet)
