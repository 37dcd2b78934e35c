# RecvOp: the receive operation of one stream. Owns the filled buffers that were not delivered yet, and gives each back to
# the pool as soon as its bytes are copied or consumed. It decides what the end of a submission means: submit again, end
# of file, no buffers for the moment, or an error. Passes bytes to its Transport; knows no protocol.
#
# Small arrivals come in provided buffers, many per system call, and are copied out. For large arrivals the copy costs more
# than a system call: such a stream is polled, and received straight into the destination.
cimport cython
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.stdint cimport uint32_t

from uringloop._core.engine.engine cimport Engine
from uringloop._core.engine.op cimport NEED_READ, OP_IDLE, OP_IN_KERNEL, OP_QUEUED, Op
from uringloop._core.engine.ready_queue cimport ready_push
from uringloop._core.kernel.abi cimport (
    IORING_CQE_BUFFER_SHIFT, IORING_CQE_F_BUFFER, IORING_CQE_F_MORE, IORING_OP_POLL_ADD, IORING_OP_RECV,
    IORING_RECV_MULTISHOT, IOSQE_BUFFER_SELECT, io_uring_sqe,
)
from uringloop._core.kernel.buffers cimport BufferPool
from uringloop._core.kernel.libc cimport (
    EAGAIN, ECANCELED, EINTR, EINVAL, EIO, ENOBUFS, MSG_DONTWAIT, POLLIN, c_poll, c_recv, errno, pollfd,
)
from uringloop._core.kernel.probe cimport kernel_features
from uringloop._core.transport.transport cimport TRANSPORT_CLOSING, TRANSPORT_RELEASING, Transport

cdef extern from "<sys/ioctl.h>" nogil:
    int FIONREAD
    int ioctl(int fd, unsigned long request, int *value)

cdef enum:
    SMALL = 8192             # smaller arrivals are faster with provided buffers
    LARGE = 32768            # arrivals from this size on are received directly
    STREAK = 4               # so many consecutive arrivals change the mode
    MOST_A_TURN = 1048576
    TAKES_A_TURN = 4


@cython.no_gc_clear  # the destructor gives buffers back to the pool, and so needs it
cdef class RecvOp(Op):
    def __cinit__(self, Transport transport):
        self.transport = transport
        self.engine = transport.engine
        self.pool = self.engine.buffers()
        self.fd = transport.fd
        self.need = NEED_READ
        self.repeatable = True
        self.multishot = True
        self.first = self.last = -1
        self.mode = self.small_mode = self._mode_for_small()

    def __dealloc__(self):
        self.drop()
        if self.mode == RECV_DIRECT and self.pool is not None:
            self.pool.bulk -= 1

    cdef int _mode_for_small(self) except -1:
        if self.pool.ring is NULL:
            return RECV_POLL
        return RECV_MULTISHOT if kernel_features().multishot_recv else RECV_ONESHOT

    cdef int start(self) except -1:
        if self.state == OP_IDLE and not self.queued and not self.ended:
            self.engine.submit(self)
        return 0

    cdef int failure(self) noexcept:
        """The error that the kernel has told of, and `run` has not told yet; 0 for none."""
        if not self.ended or self.end_result >= 0 or self.end_result in (-EAGAIN, -EINTR, -ECANCELED, -EINVAL, -ENOBUFS):
            return 0
        return -self.end_result

    cdef int stop(self) except -1:
        """Ask the kernel to stop; data that has arrived by then is kept."""
        if self.state == OP_IN_KERNEL or self.state == OP_QUEUED:
            self.engine.cancel(self)
        return 0

    cdef int resume(self) except -1:
        """Resume reading: in the next turn, deliver the kept data first."""
        if self.queued:
            return 0
        if self.undelivered or self.first >= 0 or self.ended or self.readable:
            ready_push(self.engine.ready, self)
            return 0
        return self.start()

    cdef void drop(self) noexcept:
        """Drop all data that was not delivered, and give its buffers back."""
        cdef int number
        if self.pool is None:
            self.first = -1  # there was no memory to make the pool
        while self.first >= 0:
            number = self.first
            self.first = self.pool.arrivals[number].next
            self.pool.give_back(number)
        self.undelivered = None

    cdef void fill(self, io_uring_sqe *sqe) noexcept:
        sqe.fd = self.fd
        if (self.small_mode == RECV_POLL) != (self.pool.ring is NULL):
            # The loop has moved to another ring, which may or may not have the buffers.
            self.small_mode = self._mode_for_small()
            if self.mode != RECV_DIRECT:
                self.mode = self.small_mode
        if self.mode == RECV_POLL or self.mode == RECV_DIRECT:
            sqe.opcode = IORING_OP_POLL_ADD
            sqe.poll32_events = POLLIN
            return
        sqe.opcode = IORING_OP_RECV
        sqe.flags = IOSQE_BUFFER_SELECT
        if self.mode == RECV_MULTISHOT:
            sqe.ioprio = IORING_RECV_MULTISHOT

    cdef int attempt(self, uint32_t *flags) noexcept:
        cdef int number
        cdef ssize_t got
        cdef size_t size = self.pool.size
        cdef pollfd watched
        if self.mode == RECV_DIRECT:
            watched.fd = self.fd
            watched.events = POLLIN
            watched.revents = 0
            number = c_poll(&watched, 1, 0)
            return -EAGAIN if number == 0 else -errno if number < 0 else watched.revents
        number = self.pool.take()
        if number < 0:
            return -ENOBUFS
        if self.attempt_limit and <size_t> self.attempt_limit < size:
            size = self.attempt_limit
        got = c_recv(self.fd, self.pool.addresses[number], size, MSG_DONTWAIT)
        if got <= 0:
            self.pool.return_unused(number)
            return <int> got if got == 0 else -errno
        flags[0] = <uint32_t> number << IORING_CQE_BUFFER_SHIFT | IORING_CQE_F_BUFFER | IORING_CQE_F_MORE
        return <int> got

    cdef void record_completion(self, int res, uint32_t flags) noexcept:
        cdef uint32_t mine = 0
        if self.mode == RECV_POLL and res > 0 and not flags & IORING_CQE_F_BUFFER:
            # It was the poll of a ring without provided buffers: receive now.
            res = self.attempt(&mine)
            if res > 0:
                self.pool.mark_delivered(mine >> IORING_CQE_BUFFER_SHIFT)
                self._arrived(mine >> IORING_CQE_BUFFER_SHIFT, res)
        elif self.mode == RECV_DIRECT and res > 0 and not flags & IORING_CQE_F_BUFFER:
            self.readable = True
        elif flags & IORING_CQE_F_BUFFER:
            if 0 < res <= <int> self.pool.size:
                self._arrived(flags >> IORING_CQE_BUFFER_SHIFT, res)
            else:
                self.pool.give_back(flags >> IORING_CQE_BUFFER_SHIFT)
                if res > 0:  # more than the buffer holds: end the connection, and read nothing of it
                    res = -EIO
                    flags = 0
        if not flags & IORING_CQE_F_MORE:
            self.ended = True
            self.end_result = res

    cdef void _arrived(self, int number, int length) noexcept:
        self.pool.arrivals[number].length = length
        self.pool.arrivals[number].next = -1
        if self.first < 0:
            self.first = number
        else:
            self.pool.arrivals[self.last].next = number
        self.last = number

    cdef void dropped(self) noexcept:
        """The loop is closing, so `run` can't close the descriptor of a closed connection: do that here."""
        cdef Transport transport = self.transport  # our own reference, as in `run`
        if transport is not None and transport.state >= TRANSPORT_RELEASING:
            transport.release()

    cdef int run(self, object loop) except -1:
        # Our own reference: a released transport drops its reference to us, and ours may be the last one to it.
        cdef Transport transport = self.transport
        if transport is None:
            self.drop()
            return 0
        transport.sated = False
        try:
            self._deliver()
            if self.readable and not self.undelivered and transport.wants_data():
                self._take()
            if self.ended and self.transport is not None:
                self._end()
            if self.transport is None:
                return 0
            if transport.state >= TRANSPORT_RELEASING:
                transport.release()
            elif transport.sated:
                self.stop()  # further data waits in the socket, which slows the peer down
                if not self.queued:
                    ready_push(self.engine.ready, self)
            elif transport.wants_data() and not self.undelivered:
                self.start()
            return 0
        except (SystemExit, KeyboardInterrupt):
            # The exception leaves the loop: deliver the rest, and the end, when it runs again.
            if not self.queued:
                ready_push(self.engine.ready, self)
            raise
        except BaseException as error:
            # Out of memory: the connection has lost data, and cannot go on.
            self.drop()
            return transport.fatal(error, "Fatal read error on socket transport")

    cdef int _deliver(self) except -1:
        """Deliver the arrived data in order, as long as the transport wants it."""
        cdef Transport transport = self.transport
        cdef int number, length
        cdef bytes kept
        while self.undelivered and transport.wants_data():
            kept = <bytes> self.undelivered.pop(0)
            transport.data_arrived(PyBytes_AS_STRING(kept), PyBytes_GET_SIZE(kept), kept)
        while self.first >= 0:
            if not transport.wants_data():
                return self._copy_undelivered()
            number = self.first
            self.first = self.pool.arrivals[number].next
            length = self.pool.arrivals[number].length
            try:
                transport.data_arrived(self.pool.addresses[number], length, None)
            finally:
                self.pool.give_back(number)
            self._measure(length)
        return 0

    cdef int _take(self) except -1:
        """RECV_DIRECT: receive all that is available, up to a bound, so that other streams get their turn. In few pieces,
        because each makes the kernel tell the sender that there is room again."""
        cdef Transport transport = self.transport
        cdef Py_ssize_t got, left, piece
        cdef int available = 0
        self.readable = False
        ioctl(self.fd, FIONREAD, &available)
        left = min(max(available, SMALL), MOST_A_TURN if self.pool.bulk > 1 else self.pool.bulk_share())
        for _ in range(TAKES_A_TURN):
            if not transport.wants_data():
                self.readable = True
                break
            piece = min(left, self.pool.bulk_share())
            got = transport.receive(min(piece, self.attempt_limit) if self.attempt_limit else piece)
            if got <= 0:
                if got != -EAGAIN:
                    self.ended = True
                    self.end_result = <int> got
                break
            self._measure(got)
            left -= got
            if left <= 0 or self.mode != RECV_DIRECT:
                break
        return 0

    cdef int _measure(self, Py_ssize_t length) except -1:
        """Change the mode if another one would have been better for all of the last arrivals."""
        cdef bint other = length < SMALL if self.mode == RECV_DIRECT else length >= LARGE
        self.streak = self.streak + 1 if other else 0
        if self.streak < STREAK:
            return 0
        self.streak = 0
        if self.mode == RECV_DIRECT:
            self.mode = self.small_mode
            self.pool.bulk -= 1
        else:
            self.mode = RECV_DIRECT
            self.pool.bulk += 1
            self.stop()  # end the submission of the old mode; `run` then submits again
        return 0

    cdef int _copy_undelivered(self) except -1:
        """Reading was paused: copy the rest, so that a slow reader doesn't keep buffers from all others. If the transport
        was closed, drop the rest."""
        cdef int number
        if self.transport.state >= TRANSPORT_CLOSING:
            self.drop()
            return 0
        if self.undelivered is None:
            self.undelivered = []
        while self.first >= 0:
            number = self.first
            self.undelivered.append(PyBytes_FromStringAndSize(self.pool.addresses[number],
                                                       self.pool.arrivals[number].length))
            self.first = self.pool.arrivals[number].next
            self.pool.give_back(number)
        return 0

    cdef int _end(self) except -1:
        """The submission has ended. While reading is paused, don't report why, because asyncio doesn't read then either."""
        cdef Transport transport = self.transport
        cdef int result = self.end_result
        if transport.state >= TRANSPORT_CLOSING:
            self.ended = False
            return 0
        if self.undelivered or not transport.wants_data():
            if result > 0 or result == -ECANCELED or result == -ENOBUFS:
                self.ended = False
            return 0
        if result == 0:
            transport.eof_arrived()  # if an exception interrupts it, `ended` stays set
        self.ended = False
        if result == -ENOBUFS:
            # No buffers: flow control, not an error. With multishot it comes even if nothing has arrived. Buffers are
            # given back within each turn, so there will be free ones; and the pool grows, up to its limit.
            self.pool.grow()
        elif result == -EINVAL and self.mode == RECV_MULTISHOT:
            self.mode = RECV_ONESHOT
        elif result < 0 and result not in (-ECANCELED, -EAGAIN, -EINTR):
            return transport.io_failed(-result, "Fatal read error on socket transport")
        return 0

    cdef object culprit(self):
        return None if self.transport is None else self.transport._protocol

    cdef str describe(self):
        return f"RecvOp {'multishot oneshot poll direct'.split()[self.mode]}"

    cdef object requester(self):
        return self.transport
