# DatagramTransport: UDP and Unix datagrams, with asyncio's DatagramTransport interface. It waits for readiness through
# the engine, then receives many datagrams with one system call. Answers sent while these are delivered leave together
# (datagram_batch.pyx), all other datagrams at once. It reports errors of system calls to the protocol, and they never close the
# transport. Owns the datagrams that could not be sent yet.
import os
from collections import deque

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.object cimport PyObject
from libc.stdint cimport uint32_t

from uringloop._core.cpython.context cimport context_enter, context_exit
from uringloop._core.engine.op cimport NEED_READ, NEED_WRITE, OP_IDLE, OP_IN_KERNEL, OP_QUEUED, Op
from uringloop._core.kernel.abi cimport IORING_OP_POLL_ADD, io_uring_sqe, ur_now_ns
from uringloop._core.kernel.address cimport address_from_raw, address_is_known, raw_from_address
from uringloop._core.kernel.libc cimport (
    AF_INET, AF_INET6, EAGAIN, EINTR, MSG_DONTWAIT, MSG_NOSIGNAL, POLLIN, POLLOUT, c_recvfrom, c_send, c_sendto,
    errno, mmsghdr, recvmmsg, sockaddr, sockaddr_storage, socklen_t,
)
from uringloop._core.loop.loop cimport Loop
from uringloop._core.lifetime.guard cimport ur_only_core_makes
from uringloop._core.transport.address_cache cimport NAME, Peers
from uringloop._core.transport.datagram_batch cimport BATCH, MOST, Batch, DatagramBatch, ReceiveRoom
from uringloop._core.transport.reports cimport count_late_write
from uringloop._core.transport.transport cimport TRANSPORT_CLOSING, TRANSPORT_LOST
from uringloop._core.transport.transport cimport TRANSPORT_RELEASING, Transport
from uringloop._core.transport.transport import DatagramInterface

cdef extern from "Python.h":
    PyObject *PyObject_VectorcallMethod(PyObject *name, PyObject **args, size_t nargsf, PyObject *kwnames) noexcept
    size_t PY_VECTORCALL_ARGUMENTS_OFFSET

cdef extern from *:
    """
    static inline PyObject *ur_datagram_checked(PyObject *result) { return result; }
    """
    object checked "ur_datagram_checked"(PyObject *)

cdef enum:
    LARGEST = 262144      # for other sockets; as on asyncio's own loop
    TURN = 128            # datagrams delivered before other callbacks run
    OVERHEAD = 8          # an empty datagram counts, too, in the write buffer's size
    PATIENCE_NS = 100_000 # the longest time that an answer waits for later answers

cdef str _RECEIVED = "datagram_received"


cdef class DatagramPoll(Op):
    """Waits for the readiness of one direction."""

    cdef void fill(self, io_uring_sqe *sqe) noexcept:
        sqe.opcode = IORING_OP_POLL_ADD
        sqe.fd = self.fd
        sqe.poll32_events = self.events

    cdef int attempt(self, uint32_t *flags) noexcept:
        # Without a ring: the first attempt is made at the submission, the second because the descriptor is ready. If it is
        # not ready after all, the system call finds out.
        self.readiness_known = not self.readiness_known
        return -EAGAIN if self.readiness_known else <int> self.events

    cdef int run(self, object loop) except -1:
        cdef DatagramTransport transport = self.transport
        if transport is None:
            return 0
        try:
            if self.events == <uint32_t> POLLIN:
                transport.readable()
            else:
                transport.writable()
        finally:
            transport.release()
        return 0

    cdef void dropped(self) noexcept:
        """The loop is closing, so `run` can't close the descriptor of a closed endpoint: do that here."""
        cdef DatagramTransport transport = self.transport  # our own reference, as in `run`: the transport may drop its reference to us
        if transport is not None:
            transport.release()

    cdef bint forking(self) noexcept:
        if self.transport is None or not self.transport.gathered():
            return False
        self.transport.flush()
        return True

    cdef object requester(self):
        return self.transport


cdef DatagramPoll make_poll(DatagramTransport transport, uint32_t events):
    cdef DatagramPoll poll = DatagramPoll.__new__(DatagramPoll)
    poll.transport = transport
    poll.fd = transport.fd
    poll.events = events
    poll.need = NEED_READ if events == <uint32_t> POLLIN else NEED_WRITE
    poll.repeatable = True
    return poll


cdef class DatagramTransport(Transport):
    _interface = DatagramInterface

    # When to receive

    def _start_reading(self):
        """Start receiving, once connection_made was called."""
        try:
            if self.reader is None and self.state < TRANSPORT_CLOSING and self.fd >= 0:
                self.reader = make_poll(self, POLLIN)
                self.read_on()
        except MemoryError as error:
            self.fatal(error, "Fatal read error on datagram transport")

    cdef int read_on(self) except -1:
        if self.reader is not None and self.reader.state == OP_IDLE and self.state < TRANSPORT_CLOSING \
                and not self._paused:
            self.engine.submit(self.reader)
        return 0

    def is_reading(self):
        return self.state < TRANSPORT_CLOSING and not self._paused

    def pause_reading(self):
        if self.state >= TRANSPORT_CLOSING or self._paused:
            return
        self._paused = True
        self.stop_receiving()

    def resume_reading(self):
        if self.state >= TRANSPORT_CLOSING or not self._paused:
            return
        self._paused = False
        (<object> self._loop).call_soon(self._deliver_undelivered)
        self.read_on()

    # Receiving

    cdef int readable(self) except -1:
        cdef int delivered = 0, count = 1
        cdef list data, addresses
        try:
            if self.undelivered is not None:
                self._deliver_undelivered()  # before newer datagrams
            while count and delivered < TURN and self.state < TRANSPORT_CLOSING and not self._paused:
                data, addresses = [], []
                try:
                    if self.family == AF_INET or self.family == AF_INET6:
                        count = self.receive_batch(data, addresses)
                    else:
                        count = self.receive_one(data, addresses)
                except OSError as error:
                    delivered += 1
                    self.failed(error)
                except MemoryError as error:
                    self.fatal(error, "Fatal read error on datagram transport")
                delivered += len(data)
                if data:
                    self.deliver(data, addresses)
        finally:  # after a KeyboardInterrupt, too, the transport must go on receiving
            self.read_on()
        return 0

    cdef int receive_batch(self, list data, list addresses) except -1:
        """Append the datagrams of one recvmmsg. Return False if, as far as is known, none are left."""
        cdef Batch *batch = &self.room.batch
        cdef mmsghdr *message
        cdef int i, count
        if self.peers is None:
            self.peers = Peers()
        for i in range(BATCH):
            batch.messages[i].msg_hdr.msg_namelen = NAME
        count = recvmmsg(self.fd, batch.messages, BATCH, MSG_DONTWAIT, NULL)
        if count < 0:
            if errno == EAGAIN:
                return False
            if errno == EINTR:
                return True
            raise OSError(errno, os.strerror(errno))
        for i in range(count):
            message = &batch.messages[i]
            data.append(PyBytes_FromStringAndSize(<char *> batch.pieces[i].iov_base, message.msg_len))
            addresses.append(self.peers.address_of(batch.names[i], message.msg_hdr.msg_namelen))
        return count == BATCH

    cdef int receive_one(self, list data, list addresses) except -1:
        """The same with one recvfrom."""
        cdef sockaddr_storage raw
        cdef socklen_t length = sizeof(raw)
        cdef ssize_t count
        if not address_is_known(self.family):
            try:
                received, address = self.make_socket().recvfrom(LARGEST)
            except (BlockingIOError, InterruptedError):
                return False
            data.append(received)
            addresses.append(address)
            return True
        count = c_recvfrom(self.fd, self.room.large, LARGEST, MSG_DONTWAIT, <sockaddr *> &raw, &length)
        if count < 0:
            if errno == EAGAIN:
                return False
            if errno == EINTR:
                return True
            raise OSError(errno, os.strerror(errno))
        data.append(PyBytes_FromStringAndSize(self.room.large, count))
        # An unnamed sender has no address at all: asyncio's own loop shows None.
        addresses.append(address_from_raw(&raw, length))
        return True

    cdef int name_of(self, object address, sockaddr_storage *raw, socklen_t *length) except -1:
        """Fill `raw`, or say no."""
        if self.peers is not None and self.peers.name_of(address, raw, length):
            return True
        return raw_from_address(self.family, address, raw, length)

    cdef int deliver(self, list data, list addresses) except -1:
        """Deliver datagrams to the protocol, gather the datagrams that it sends meanwhile, then send those."""
        cdef Py_ssize_t done = 0
        try:
            while done < len(data):
                self.delivering = not self.connected
                try:
                    self.deliver_some(data, addresses, &done)
                finally:
                    self.delivering = False
                    self.send_gathered()
        except (SystemExit, KeyboardInterrupt):
            if done < len(data):  # the others are delivered when the loop runs again
                self.undelivered = (data[done:], addresses[done:])
                (<object> self._loop).call_soon(self._deliver_undelivered)
            raise
        return 0

    cdef int deliver_some(self, list data, list addresses, Py_ssize_t *done) except -1:
        """Deliver all datagrams, or until the first answer has waited long enough."""
        cdef PyObject *stack[4]
        cdef Py_ssize_t i
        context_enter(<PyObject *> self.cvars)
        try:
            while done[0] < len(data):
                i = done[0]
                if self._paused or self.state >= TRANSPORT_CLOSING:
                    if self.state < TRANSPORT_CLOSING:
                        self.undelivered = (data[i:], addresses[i:])
                    done[0] = len(data)
                    break
                done[0] += 1
                protocol = self._protocol
                stack[1] = <PyObject *> protocol
                stack[2] = <PyObject *> data[i]
                stack[3] = <PyObject *> addresses[i]
                try:
                    checked(PyObject_VectorcallMethod(
                        <PyObject *> _RECEIVED, &stack[1], 3 | PY_VECTORCALL_ARGUMENTS_OFFSET, NULL))
                except (SystemExit, KeyboardInterrupt):
                    raise
                except BaseException as error:
                    self._report(error, "Exception in callback protocol.datagram_received()")
                if self.gathered() and ur_now_ns() - self.outgoing.since_ns > PATIENCE_NS:
                    break
        finally:
            context_exit(<PyObject *> self.cvars)
        return 0

    def _deliver_undelivered(self):
        if self.undelivered is not None and not self._paused:
            (data, addresses), self.undelivered = self.undelivered, None
            self.deliver(data, addresses)

    # Sending

    def sendto(self, data, addr=None):
        """Send one datagram, or queue it while the socket's buffer is full. The caller may change the data afterwards."""
        if type(data) is not bytes:
            if not isinstance(data, (bytes, bytearray, memoryview)):
                raise TypeError(f"data argument must be a bytes-like object, not {type(data).__name__!r}")
            data = bytes(data)
        cdef bint before
        if self._address is not None:
            if addr is not None and addr != self._address:
                raise ValueError(f"Invalid address: must be None or {self._address}")
            addr = self._address
        if self.state >= TRANSPORT_RELEASING or self.state == TRANSPORT_LOST and self._address is not None:
            self.late_writes = count_late_write(self.late_writes, "socket.send() raised exception.")
            return
        before, self.by_program = self.by_program, True
        try:
            if self.waiting:
                self.enqueue(<bytes> data, addr)
            elif not self.delivering or not self.gather(<bytes> data, addr):
                self.send_now(<bytes> data, addr)
        finally:
            self.by_program = before

    cdef int send_now(self, bytes data, object address) except -1:
        try:
            if self.gathered():
                self.flush()
        finally:  # the protocol, told of an error of those before, may raise
            if self.waiting or not self.try_send(data, address):
                self.enqueue(data, address)
        return 0

    cdef bint try_send(self, bytes data, object address) except -1:
        """Send the datagram, or report the error. Return False if the socket's buffer is full."""
        cdef sockaddr_storage raw
        cdef socklen_t length = 0
        cdef ssize_t count
        try:
            while True:
                if self.connected:
                    count = c_send(self.fd, PyBytes_AS_STRING(data), PyBytes_GET_SIZE(data), MSG_DONTWAIT | MSG_NOSIGNAL)
                elif self.name_of(address, &raw, &length):
                    count = c_sendto(self.fd, PyBytes_AS_STRING(data), PyBytes_GET_SIZE(data),
                                     MSG_DONTWAIT | MSG_NOSIGNAL, <sockaddr *> &raw, length)
                else:
                    self.make_socket().sendto(data, address)
                    return True
                if count >= 0:
                    return True
                if errno == EAGAIN:
                    return False
                if errno != EINTR:
                    raise OSError(errno, os.strerror(errno))
        except (BlockingIOError, InterruptedError):
            return False
        except OSError as error:
            self.failed(error)
        except (SystemExit, KeyboardInterrupt):
            raise
        except BaseException as error:
            self.fatal(error, "Fatal write error on datagram transport")
        return True

    cdef int gather(self, bytes data, object address) except -1:
        """Keep it for the system call that sends all answers. Return False if it can't be sent with them."""
        cdef sockaddr_storage raw
        cdef socklen_t length = 0
        if self.family != AF_INET and self.family != AF_INET6:
            return False
        if not self.name_of(address, &raw, &length):
            return False
        if self.outgoing is None:
            self.outgoing = DatagramBatch.__new__(DatagramBatch)
        self.outgoing.add(data, &raw, length)
        self.engine.gathering = self.reader
        if self.outgoing.count == MOST:
            self.flush()
        return True

    cdef inline bint gathered(self) noexcept:
        return self.outgoing is not None and self.outgoing.count > 0

    cdef int send_gathered(self) except -1:
        if self.gathered():
            try:
                self.flush()
            finally:
                self.after_sending()
        return 0

    cdef int flush(self) except -1:
        """Send the gathered datagrams."""
        cdef DatagramBatch outgoing = self.outgoing
        cdef int failures[MOST]
        cdef int failed = 0, gone, i
        cdef bint before = self.delivering
        cdef list data, fresh = []
        gone = outgoing.count if self.state >= TRANSPORT_LOST else outgoing.send(self.fd, failures, &failed)
        self.delivering = False  # add nothing before all errors are reported
        try:
            data = outgoing.take(fresh)
            self.engine.gathering = None
            for i in range(gone, len(data)):
                self.enqueue(data[i], self.peers.address_of(outgoing.names[i], outgoing.lengths[i]))
            # After the last datagram, because error_received may close the transport, or send.
            return self._tell_errors([OSError(failures[i], os.strerror(failures[i])) for i in range(failed)])
        finally:
            self.delivering = before

    def _tell_errors(self, list errors):
        while errors:
            try:
                self.failed(errors.pop(0))
            except BaseException:  # leaves the loop: report the other errors when it runs again
                (<object> self._loop).call_soon(self._tell_errors, errors)
                raise
        return 0

    cdef int enqueue(self, bytes data, object address) except -1:
        if self.waiting is None:
            self.waiting = deque()
        self.waiting.append((data, address))
        self.waiting_bytes += PyBytes_GET_SIZE(data) + OVERHEAD
        self.await_room()
        if self.waiting_bytes > self.high:
            self.pause_writer()
        return 0

    cdef int await_room(self) except -1:
        if self.writer is None:
            self.writer = make_poll(self, POLLOUT)
        if self.writer.state == OP_IDLE:
            self.engine.submit(self.writer)
        return 0

    cdef int writable(self) except -1:
        """Send queued datagrams while there is room. error_received may call close() and sendto(), which see the rest."""
        cdef bytes data
        try:
            while self.waiting and self.state < TRANSPORT_LOST:
                data, address = self.waiting.popleft()
                self.waiting_bytes -= PyBytes_GET_SIZE(data) + OVERHEAD
                if not self.try_send(data, address):
                    self.waiting.appendleft((data, address))
                    self.waiting_bytes += PyBytes_GET_SIZE(data) + OVERHEAD
                    break
        finally:
            if self.waiting and self.state < TRANSPORT_LOST:
                self.await_room()
            self.after_sending()
        return 0

    cdef int after_sending(self) except -1:
        try:
            self.resume_writer()
        finally:
            if self.state == TRANSPORT_CLOSING and self.unsent() == 0:
                self.lose(None)
        return 0

    cdef int failed(self, object error) except -1:
        """Report a system call's error to the protocol; it never closes the transport."""
        if self.by_program:
            self._protocol.error_received(error)  # in the caller's context, and the caller gets its exceptions
            return 0
        try:
            self.call("error_received", error)
        except (SystemExit, KeyboardInterrupt):
            raise
        except BaseException as raised:
            self._report(raised, "Exception in callback protocol.error_received()")
        return 0

    cdef Py_ssize_t unsent(self) noexcept:
        cdef Py_ssize_t size = self.waiting_bytes
        if self.gathered():
            size += self.outgoing.size() + self.outgoing.count * OVERHEAD
        return size

    cdef void drop_unsent(self) noexcept:
        self.waiting = None
        self.waiting_bytes = 0
        if self.writer is not None:
            self._end(self.writer)

    # The end

    def abort(self):
        """Close at once, and drop queued data. Datagrams that datagram_received has sent by now are not dropped."""
        cdef bint before = self.by_program
        self.by_program = True
        try:
            if self.gathered():
                self.flush()
        finally:
            self.by_program = before
            self.force_close(None)

    cdef int stop_receiving(self) except -1:
        return 0 if self.reader is None else self._end(self.reader)

    def _end(self, DatagramPoll poll):
        if poll.state == OP_IN_KERNEL or poll.state == OP_QUEUED:
            self.engine.cancel(poll)
        return 0

    cdef bint idle(self) noexcept:
        return (self.reader is None or self.reader.state == OP_IDLE) and (
            self.writer is None or self.writer.state == OP_IDLE)

    cdef int release(self) except -1:
        Transport.release(self)
        if self.fd < 0:
            # Break the cycle between the polls and the transport.
            if self.reader is not None:
                self.reader.transport = None
            if self.writer is not None:
                self.writer.transport = None
        return 0


def make_datagram_transport(Loop loop, sock, protocol, address, waiter, extra, cvars):
    """Make a transport on a datagram socket, which the transport owns from now on."""
    cdef DatagramTransport transport = DatagramTransport.__new__(DatagramTransport)
    room = (<object> loop)._datagram_room
    if room is None:
        room = (<object> loop)._datagram_room = ReceiveRoom()
    transport.room = room
    transport._address = address
    transport.family = sock.family
    transport.begin(loop, protocol, sock.fileno(), sock, extra, None, cvars)
    transport.connected = len(transport.peer) > 0
    transport.introduce(waiter)
    return transport
ur_only_core_makes(DatagramTransport)
ur_only_core_makes(DatagramPoll)
