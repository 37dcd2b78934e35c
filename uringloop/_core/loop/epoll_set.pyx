# EpollSet: the descriptors that add_reader and add_writer watch stand in an epoll set, and the loop waits for that set as it
# waits for a socket. One operation a turn tells of every descriptor that is ready, however many are watched; the kernel
# reports them level-triggered, as asyncio's selectors do; and closing a descriptor ends its watch, because epoll, unlike a poll
# in the ring, does not keep the file open.
#
# Owns the epoll descriptor, the table of what is watched, and the array that the kernel fills with events. Puts handles into
# the loop's ready queue; never calls one.
import os

from cpython.object cimport PyObject, traverseproc, visitproc
from libc.stdint cimport uint32_t, uint64_t, uintptr_t

from uringloop._core.engine.engine cimport forks
from uringloop._core.engine.op cimport NEED_READ, OP_IDLE, Op
from uringloop._core.engine.ready cimport ready_push
from uringloop._core.kernel.abi cimport IORING_OP_EPOLL_WAIT, IORING_OP_POLL_ADD, io_uring_sqe
from uringloop._core.kernel.libc cimport (
    EAGAIN, EBADF, EEXIST, ENOENT, EPOLLIN, EPOLLOUT, EPOLL_CLOEXEC, EPOLL_CTL_ADD, EPOLL_CTL_DEL, EPOLL_CTL_MOD,
    POLLIN, c_close, epoll_create1, epoll_ctl, epoll_event, epoll_wait, errno,
)
from uringloop._core.kernel.probe cimport offer
from uringloop._core.loop.handle cimport Handle
from uringloop._core.loop.loop cimport Loop
from uringloop._core.objects.counters cimport COUNT_FD, count_freed, count_made
from uringloop._core.objects.guard cimport (
    URINGLOOP_DEBUG, ur_get_traverse, ur_only_core_makes, ur_python_makes, ur_set_traverse, ur_visit_owned,
)


cdef class Watched:
    pass


cdef class EpollSet(Op):
    def __cinit__(self, Loop loop not None):
        self.loop = loop
        self.engine = loop.engine
        self.need = NEED_READ
        self.repeatable = True
        self.watched = {}
        self.slots = []
        self.free_slots = []
        self.forks = forks
        self.collects = self.engine.has_ring and offer().epoll_wait
        self.fd = epoll_create1(EPOLL_CLOEXEC)
        if self.fd < 0:
            raise OSError(errno, os.strerror(errno))
        if URINGLOOP_DEBUG:
            count_made(COUNT_FD)

    def __dealloc__(self):
        # The kernel's reference has gone: it has no operation on the set.
        if self.fd >= 0:
            c_close(self.fd)
            if URINGLOOP_DEBUG:
                count_freed(COUNT_FD)

    # What is watched

    def add(self, int fd, bint write, Handle handle not None):
        """Watch the descriptor from now on. The handle that was run for it before, or None; OSError as epoll_ctl says it."""
        cdef Watched watched = self.watched.get(fd)
        cdef uint32_t event = EPOLLOUT if write else EPOLLIN
        cdef int err
        if self.forks != forks:
            self.renew()
        if watched is None:
            watched = Watched.__new__(Watched)
            watched.fd = fd
            watched.slot = <uint32_t> (self.free_slots.pop() if self.free_slots else len(self.slots))
            if watched.slot == <uint32_t> len(self.slots):
                self.slots.append(None)
        # epoll_ctl also where nothing seems to change: the program may have closed the descriptor and its number may be
        # another file's, and the set watches files.
        # The set may have got the number of a descriptor that the program has closed.
        err = EBADF if fd == self.fd else self.enrol(watched, watched.events | event)
        if err:
            if not watched.events:
                self.free_slots.append(watched.slot)
            raise OSError(err, os.strerror(err))
        self.watched[fd] = self.slots[watched.slot] = watched
        if write:
            handle, watched.writer = watched.writer, handle
        else:
            handle, watched.reader = watched.reader, handle
        self.ask()
        return handle

    def remove(self, int fd, bint write):
        """Watch no longer. The handle that was run for it, which the caller cancels, or None if there was none."""
        cdef Watched watched = self.watched.get(fd)
        cdef object handle
        if watched is None:
            return None
        if self.forks != forks:
            self.renew()
        if write:
            handle, watched.writer = watched.writer, None
        else:
            handle, watched.reader = watched.reader, None
        if handle is not None:
            self.drop(watched, EPOLLOUT if write else EPOLLIN)
        return handle

    cdef int enrol(self, Watched watched, uint32_t events) noexcept:
        """Ask the kernel to watch the descriptor for all of `events`: 0, or the errno."""
        cdef epoll_event event
        cdef int err = ENOENT
        event.events = events
        event.data.u64 = <uint64_t> watched.serial << 32 | watched.slot
        if watched.events:
            err = 0 if epoll_ctl(self.fd, EPOLL_CTL_MOD, watched.fd, &event) == 0 else errno
        if err == ENOENT:
            self.serial += 1
            event.data.u64 = <uint64_t> self.serial << 32 | watched.slot
            err = 0 if epoll_ctl(self.fd, EPOLL_CTL_ADD, watched.fd, &event) == 0 else errno
            if err == EEXIST:  # a registration that could not be deleted, because the number was closed at that moment
                err = 0 if epoll_ctl(self.fd, EPOLL_CTL_MOD, watched.fd, &event) == 0 else errno
            if not err:
                watched.serial = self.serial
        if not err:
            watched.events = events
        return err

    cdef int drop(self, Watched watched, uint32_t events) except -1:
        """Ask the kernel for these events no longer. It may have forgotten the descriptor, which the program has closed."""
        cdef epoll_event event
        watched.events &= ~events
        if watched.events:
            event.events = watched.events
            event.data.u64 = <uint64_t> watched.serial << 32 | watched.slot
            epoll_ctl(self.fd, EPOLL_CTL_MOD, watched.fd, &event)
            return 0
        epoll_ctl(self.fd, EPOLL_CTL_DEL, watched.fd, &event)
        del self.watched[watched.fd]
        self.slots[watched.slot] = None
        self.free_slots.append(watched.slot)
        return 0

    cdef int renew(self) except -1:
        """Another epoll, with the files that are still watched.

        A forked child shares its parent's set. And a file whose descriptor the program has closed while a duplicate is open
        stays in a set: no number is left by which the kernel could be told to drop it, and it would end every wait."""
        cdef Watched watched
        cdef epoll_event event
        cdef bint inherited = self.forks != forks
        cdef int fd = epoll_create1(EPOLL_CLOEXEC)
        if fd < 0:
            if inherited:
                raise OSError(errno, os.strerror(errno))
            return 0  # no descriptor is left; the next such event tries again
        for watched in self.watched.values():
            event.events = watched.events
            event.data.u64 = <uint64_t> watched.serial << 32 | watched.slot
            # The number may be another file's: only what the old set knows by it is watched. The parent's set is left alone.
            if inherited or epoll_ctl(self.fd, EPOLL_CTL_MOD, watched.fd, &event) == 0:
                epoll_ctl(fd, EPOLL_CTL_ADD, watched.fd, &event)
        if inherited:
            # Under the number that the engine knows; it tells the kernel of all its numbers anew.
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

    cdef int ask(self) except -1:
        """Wait for the set from the end of this turn on. Not before: the kernel must not collect what is ready until this turn's
        callbacks have read it."""
        if self.state == OP_IDLE and not self.queued:
            self.ending = True
            ready_push(self.loop.endings, self)
        return 0

    cdef int run(self, object loop) except -1:
        if self.engine.closed:
            return 0
        if not self.ending:
            return self.ask()
        if self.loop._stopping and not self.loop.starting:
            # The kernel would collect before what the program does between the two runs: the next run asks.
            ready_push(self.loop.endings, self)
            return 0
        self.ending = False
        if self.stale or self.forks != forks:
            self.renew()
        self.engine.submit(self)
        return 0

    cdef int forked(self) except -1:
        if self.forks != forks:
            self.renew()
        return 0

    cdef void fill(self, io_uring_sqe *sqe) noexcept:
        sqe.fd = self.fd
        if self.collects:
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

    cdef void note(self, int res, uint32_t flags) noexcept:
        cdef int i
        if res <= 0:
            return
        if self.engine.collected_early:
            # Callbacks of this turn, or the program between two runs, may have read what was there. What is ready then is
            # collected anew.
            self.ending = True
            ready_push(self.loop.endings, self)
            return
        if not self.collects and self.attempted != self.loop.turns:
            res = epoll_wait(self.fd, self.found, EVENTS_A_TURN, 0)
        for i in range(res):
            self.tell(&self.found[i])

    cdef int tell(self, epoll_event *event) noexcept:
        """Queue the handles of a descriptor that is ready. An error or a hang-up is both kinds', as in asyncio's selectors."""
        cdef uint32_t slot = <uint32_t> event.data.u64
        cdef Watched watched = None
        if slot < <uint32_t> len(self.slots):
            watched = self.slots[slot]
        if watched is None or watched.serial != event.data.u64 >> 32:
            self.stale = True
            return 0
        if event.events & ~<uint32_t> EPOLLOUT and watched.reader is not None:
            self.push(watched.reader)
        if event.events & ~<uint32_t> EPOLLIN and watched.writer is not None:
            self.push(watched.writer)
        return 0

    cdef int push(self, object handle) noexcept:
        if not (<Handle> handle).queued:
            ready_push(self.loop.ready, <Handle> handle)
        return 0


cdef traverseproc _traverse_watched = ur_get_traverse(Watched)


cdef int _traverse(PyObject *self, visitproc visit, void *arg) noexcept:
    # A handle is nothing the collector knows: its owner shows what it refers to.
    cdef int result = ur_visit_owned(<PyObject *> (<Watched> self).reader, visit, arg)
    result = result or ur_visit_owned(<PyObject *> (<Watched> self).writer, visit, arg)
    return result or _traverse_watched(self, visit, arg)


ur_set_traverse(Watched, <traverseproc> _traverse)
ur_only_core_makes(Watched)
ur_python_makes(EpollSet)
