# SendOp: the send operation of one stream. Owns the queue of bytes to send, which stay alive and in place while the kernel
# reads them. All data written in one turn leaves in one send; a short send continues. A stream has only one send in the
# kernel at any time, because two could overtake each other.
#
# The first send is quiet: with MSG_DONTWAIT and MSG_WAITALL, it ends inside the enter that submits it, and posts a
# completion only if it could not send everything. So the usual answer to a request costs neither a system call nor a
# completion of its own, and doesn't end the sleep that it was submitted with. If something waits for the end of the send
# (a paused writer, closing), the send is not quiet, because its success must be reported.
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.object cimport PyObject
from libc.stdint cimport uint32_t, uint64_t, uintptr_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy, memset

from uringloop._core.engine.engine cimport Engine
from uringloop._core.engine.op cimport NEED_WRITE, OP_IDLE, OP_IN_KERNEL, OP_QUEUED, Op
from uringloop._core.engine.ready_queue cimport ready_push
from uringloop._core.kernel.abi cimport (
    IORING_OP_NOP, IORING_OP_SEND, IORING_OP_SENDMSG, IORING_RECVSEND_POLL_FIRST, io_uring_sqe,
)
from uringloop._core.kernel.libc cimport (
    EAGAIN, ECANCELED, EINTR, EIO, MSG_DONTWAIT, MSG_NOSIGNAL, MSG_WAITALL, c_send, c_sendmsg, errno, iovec, msghdr,
)
from uringloop._core.kernel.probe cimport kernel_features, sizes
from uringloop._core.loop.loop cimport sends_at_once
from uringloop._core.transport.transport cimport TRANSPORT_LOST, TRANSPORT_RELEASING, Transport

cdef extern from "Python.h":
    int PyList_SetSlice(object list, Py_ssize_t low, Py_ssize_t high, PyObject *items) except -1  # NULL: delete

cdef enum:
    JOIN_BELOW = 65536  # copying this much costs less than a message of many pieces
    GATHER_UP_TO = 524288  # four sends of 128 KB cost a fifth more than one of all


cdef class SendOp(Op):
    def __cinit__(self, Transport transport):
        self.transport = transport
        self.engine = transport.engine
        self.fd = transport.fd
        self.limit = sizes().send
        self.need = NEED_WRITE
        self.repeatable = True

    def __dealloc__(self):
        free(self.gather)

    cdef object requester(self):
        return self.transport

    cdef int write(self, bytes data, Py_ssize_t high) except? -32000:
        """Queue the data, and send it at the end of this turn at the latest. A queue of more than `high` bytes may be too
        much for the socket, which is tried at once. Return a SendOutcome, or -errno."""
        self.append(data)
        if self.size > high and not self.may_gather(high) or sends_at_once(
            self.transport._loop, self.size > PyBytes_GET_SIZE(data)
        ):
            return self.push(high)
        self.start()
        return SEND_QUEUED

    cdef int push(self, Py_ssize_t high) except? -32000:
        """The queue is too long, or has waited too long: try the socket now. The transport pauses the writer if that
        doesn't help, so that drain() right after a large write waits, as on asyncio's own loop."""
        cdef bint much = self.size > high
        cdef int error = self.try_now()
        if error < 0:
            return error
        self.took_large_write |= much and self.size == 0
        self.start()  # before the transport calls pause_writing(), whose exception may leave the loop
        return SEND_BACKLOG if self.size > high else SEND_QUEUED

    cdef int append(self, bytes data) except -1:
        """Queue the data; the caller then calls `start` or `try_now`."""
        if self.head is None:
            self.head = data
            self.offset = 0
        elif self.tail is None:
            self.tail = [data]
        else:
            self.tail.append(data)
        self.size += PyBytes_GET_SIZE(data)  # only after queuing it, which may fail for lack of memory
        return 0

    cdef int start(self) except -1:
        """Make sure that the queue is sent, at the end of this turn at the latest."""
        if self.size and self.state == OP_IDLE and not self.queued:
            self.engine.submit(self)
        return 0

    cdef int try_now(self) noexcept:
        """Send as much as the socket takes at once, unless a send is in the kernel; return 0, or -errno."""
        cdef ssize_t count
        while self.size and (self.state == OP_IDLE or self.state == OP_QUEUED) and not self.has_result:
            count = self._send(self._pieces())
            if count == -EINTR:
                continue
            if count == -EAGAIN:
                self.blocked = True
                return 0
            if count < 0:
                return <int> count
            self._sent(count)
        return 0

    cdef bint may_gather(self, Py_ssize_t high) noexcept:
        """Whether more than `high` bytes may wait for the end of the turn: the socket takes them then, so they are no
        backlog. Never much more, and never if a writer would have to wait: then the socket is tried first."""
        return (self.took_large_write and not self.blocked and self.state != OP_IN_KERNEL and not self.has_result
                and self.tail is not None and self.size < min(8 * high, <Py_ssize_t> GATHER_UP_TO))

    cdef void drop(self) noexcept:
        """Drop the queue; bytes that the kernel is reading stay until the completion."""
        self.size = 0
        if self.state == OP_IDLE or self.state == OP_QUEUED:
            self.head = None
            self.tail = None

    cdef int _pieces(self) noexcept:
        """Choose the pieces of the next send, and return their number; `in_flight` gets their size."""
        cdef Py_ssize_t i, count, length
        cdef bytes joined
        if self.tail is None:
            self.in_flight = min(self.size, self.limit)
            return 1
        if self.size <= JOIN_BELOW:
            try:
                joined = (self.head[self.offset:] if self.offset else self.head) + b"".join(self.tail)
            except MemoryError:
                pass
            else:
                self.head, self.tail, self.offset = joined, None, 0
                self.in_flight = self.size
                return 1
        if self.gather is NULL:
            self.gather = <Gather *> malloc(sizeof(Gather))
        self.in_flight = min(PyBytes_GET_SIZE(self.head) - self.offset, self.limit)
        if self.gather is NULL or self.in_flight == self.limit:
            return 1
        memset(&self.gather.header, 0, sizeof(msghdr))
        self.gather.pieces[0].iov_base = PyBytes_AS_STRING(self.head) + self.offset
        self.gather.pieces[0].iov_len = self.in_flight
        count = 1
        for i in range(1, min(len(self.tail) + 1, <Py_ssize_t> PIECES_A_SEND)):
            piece = <bytes> self.tail[i - 1]
            length = min(PyBytes_GET_SIZE(piece), self.limit - self.in_flight)
            self.gather.pieces[i].iov_base = PyBytes_AS_STRING(piece)
            self.gather.pieces[i].iov_len = length
            self.in_flight += length
            count = i + 1
            if self.in_flight == self.limit:
                break
        self.gather.header.msg_iov = self.gather.pieces
        self.gather.header.msg_iovlen = count
        return <int> count

    cdef ssize_t _send(self, int pieces) noexcept:
        """Send the pieces that `_pieces` has chosen, with send(2)."""
        cdef ssize_t count
        cdef size_t length = self.in_flight
        if self.attempt_limit and length > <size_t> self.attempt_limit:
            length = self.attempt_limit
        if pieces == 1 or length < <size_t> self.in_flight:
            length = min(length, <size_t> (PyBytes_GET_SIZE(self.head) - self.offset))
            count = c_send(self.fd, PyBytes_AS_STRING(self.head) + self.offset, length, MSG_DONTWAIT | MSG_NOSIGNAL)
        else:
            count = c_sendmsg(self.fd, &self.gather.header, MSG_DONTWAIT | MSG_NOSIGNAL)
        return -errno if count < 0 else count

    cdef void _sent(self, Py_ssize_t count) noexcept:
        """Drop the bytes that the kernel has taken."""
        cdef Py_ssize_t left, taken = 0
        self.size = max(self.size - count, 0)
        while count > 0 and self.head is not None:
            left = PyBytes_GET_SIZE(self.head) - self.offset
            if count < left:
                self.offset += count
                break
            count -= left
            self.offset = 0
            if self.tail is None or taken == len(self.tail):
                self.head = None
            else:
                self.head = <bytes> self.tail[taken]
                taken += 1
        if self.tail is not None:
            if taken == len(self.tail):
                self.tail = None
            else:
                while taken > 0:  # one at a time: deleting several needs memory
                    PyList_SetSlice(self.tail, 0, min(taken, 8), NULL)
                    taken -= 8

    cdef void fill(self, io_uring_sqe *sqe) noexcept:
        cdef uint32_t flags = MSG_NOSIGNAL
        cdef int pieces
        self.quiet = False
        if self.size == 0:
            sqe.opcode = IORING_OP_NOP  # try_now has sent everything meanwhile
            self.in_flight = 0
            return
        sqe.fd = self.fd
        pieces = self._pieces()
        if self.blocked:
            sqe.ioprio = IORING_RECVSEND_POLL_FIRST
        elif kernel_features().quiet_send and self.in_flight == self.size and not self.must_tell:
            self.quiet = True
            flags |= MSG_DONTWAIT | MSG_WAITALL
        sqe.msg_flags = flags
        if pieces == 1:
            sqe.opcode = IORING_OP_SEND
            sqe.addr = <uint64_t> <uintptr_t> (PyBytes_AS_STRING(self.head) + self.offset)
            sqe.len = <uint32_t> self.in_flight
        else:
            sqe.opcode = IORING_OP_SENDMSG
            sqe.addr = <uint64_t> <uintptr_t> &self.gather.header
            sqe.len = 1

    cdef int attempt(self, uint32_t *flags) noexcept:
        if self.size == 0:
            self.in_flight = 0
            return 0
        self.quiet = False
        return <int> self._send(self._pieces())

    cdef int full_result(self) noexcept:
        return <int> self.in_flight

    cdef void record_completion(self, int res, uint32_t flags) noexcept:
        self.result = res if res <= self.in_flight else -EIO  # more than was there to send
        self.has_result = True

    cdef bint done_quietly(self) noexcept:
        self._sent(self.in_flight)
        return self.must_tell

    cdef int failure(self) noexcept:
        """The error that the kernel has told of, and `run` has not told yet; 0 for none."""
        if not self.has_result or self.result >= 0 or self.result in (-EAGAIN, -EINTR, -ECANCELED):
            return 0
        return -self.result

    cdef void run_ended(self) noexcept:
        """After a short send, send the rest, as much as the socket takes."""
        if self.has_result and self.failure() == 0:
            self.has_result = False
            if self.result > 0:
                self._sent(self.result)
        if self.transport is not None and self.transport.state < TRANSPORT_LOST and not self.engine.forked:
            self.try_now()

    cdef bint forking(self) noexcept:
        """A send has ended, and the loop has not run this operation since: what waits behind that send leaves now."""
        cdef Py_ssize_t size = self.size
        self.run_ended()
        return self.size < size

    cdef void dropped(self) noexcept:
        """The loop is closing. Send what the socket takes without waiting, as asyncio's loop would have done by now; and
        close the descriptor of a closed connection, because `run` will not do it."""
        cdef Transport transport = self.transport  # our own reference: it and we may drop the references to each other
        if transport is None:
            return
        self.run_ended()
        if transport.state >= TRANSPORT_RELEASING:
            transport.release()

    cdef int run(self, object loop) except -1:
        cdef Transport transport = self.transport
        cdef int result = 0
        if self.has_result:
            result = self.result
            self.has_result = False
            if result > 0:
                self._sent(result)
        if transport is None:
            return 0
        if transport.state >= TRANSPORT_LOST:
            # Aborted: send nothing more; the descriptor may be closed now.
            self.drop()
            if transport.state >= TRANSPORT_RELEASING:
                transport.release()
            return 0
        if result < 0 and result not in (-EAGAIN, -EINTR, -ECANCELED):
            return transport.io_failed(-result, "Fatal write error on socket transport")
        self.blocked = self.size > 0 and self.in_flight > 0
        self.start()
        try:
            return transport.sent()
        except BaseException:
            # The exception leaves the loop (KeyboardInterrupt): do the rest when the loop runs again.
            if not self.queued:
                ready_push(self.engine.ready, self)
            raise
