# SockOp: the sock_* coroutines on a socket that the caller owns. Each tries its system call in the step that returns
# the result, and waits for readiness in between, so it takes nothing from the socket unless the caller gets it. It never
# closes the socket, and does not use the descriptor after its own end. If the program closes the socket meanwhile, it stops
# waiting, and the call never returns, as on asyncio's own loop.
import os
import socket
from asyncio import base_events

import _socket

from cpython.buffer cimport PyBUF_SIMPLE, PyBUF_WRITABLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.memoryview cimport PyMemoryView_FromObject, PyMemoryView_GET_BUFFER
from cpython.object cimport PyObject
from libc.stdint cimport uint32_t

from uringloop._core.awaitables.coroutine cimport PHASE_NEW, WAIT, returns_coroutine
from uringloop._core.awaitables.future_op cimport ReadyOp
from uringloop._core.awaitables.io_refs cimport io_refs_of
from uringloop._core.engine.op cimport NEED_READ, NEED_WRITE
from uringloop._core.kernel.address cimport address_from_raw, address_is_known, raw_from_address
from uringloop._core.kernel.libc cimport (
    EAGAIN, EBADF, EINTR, MSG_DONTWAIT, MSG_NOSIGNAL, POLLIN, POLLOUT, SOCK_CLOEXEC, SOCK_NONBLOCK, c_accept4,
    c_recv, c_recvfrom, c_send, c_sendto, errno, sockaddr, sockaddr_storage, socklen_t,
)
from uringloop._core.loop.loop cimport Loop
from uringloop._core.lifetime.guard cimport ur_abstract, ur_only_core_makes

cdef extern from *:
    """
    UR_DEFINE_FREE_LIST(ur_sock_recvs)
    UR_DEFINE_FREE_LIST(ur_sock_sends)
    /* recv(2) into a new bytes object; None and errno for an error of the call. */
    static PyObject *ur_receive_bytes(int fd, Py_ssize_t size, int flags, ssize_t *got) {
        PyObject *data = PyBytes_FromStringAndSize(NULL, size);
        int error;
        if (data == NULL) return NULL;
        *got = recv(fd, PyBytes_AS_STRING(data), (size_t)size, flags);
        if (*got < 0) {
            error = errno;
            Py_DECREF(data);
            errno = error;
            Py_RETURN_NONE;
        }
        if (*got != size) _PyBytes_Resize(&data, *got);
        return data;
    }
    """
    object receive_bytes "ur_receive_bytes"(int fd, Py_ssize_t size, int flags, ssize_t *got)
    void ur_sock_recvs_install(object type) noexcept
    void ur_sock_sends_install(object type) noexcept

cdef enum:
    SCRATCH = 65536        # a receive of up to this size goes to the stack, and is copied
    LARGE = 16384          # ... unless the last receive was this large: then the copy would cost more
    HINTED = 65536         # descriptors below this number have hints

# What the last receive from each descriptor suggests about the next one. A hint affects only speed, so another
# object at the same address does no harm.
cdef struct Hint:
    PyObject *sock         # borrowed, only compared
    long drained           # the turn in which a receive got less than it asked for: the socket is empty now
    bint large
cdef Hint hints[HINTED]

cdef bytes _EMPTY = b""
cdef object _Socket = socket.socket
# These give plain numbers: the properties of socket.socket make enum members, which is slow.
cdef object _family = _socket.socket.family.__get__
cdef object _type = _socket.socket.type.__get__
cdef object _proto = _socket.socket.proto.__get__


cdef int fail(int error) except -1:
    raise OSError(error, os.strerror(error))


cdef class SockOp(ReadyOp):
    cdef int prepare(self) except -1:
        """Check the socket, as each of asyncio's sock_* methods does first."""
        sock = self.sock
        if type(sock) is not _Socket:
            base_events._check_ssl_socket(sock)
            self.by_method = True
        if self.loop._debug and sock.gettimeout() != 0:
            raise ValueError("the socket must be non-blocking")
        self.fd = sock.fileno()
        return 0

    cdef object first(self):
        self.prepare()
        outcome = self.act()
        if outcome is WAIT and self.loop._transports.has(self.fd):
            (<object> self.loop)._ensure_fd_no_transport(self.fd)
        return outcome

    cdef object suspend(self):
        if isinstance(self.sock, _Socket):
            self.refs = io_refs_of(self.sock)
            if self.refs is not None:
                self.refs.begin(self.loop)
        return ReadyOp.suspend(self)

    cdef object again(self):
        self.forget()
        ReadyOp.again(self)
        if self.sock.fileno() != self.fd:
            fail(EBADF)  # the socket was detached or closed meanwhile: another file may have the number
        return self.act()

    cdef int stop(self) except -1:
        self.forget()
        return ReadyOp.stop(self)

    def __dealloc__(self):
        self.forget()

    cdef int forget(self) except -1:
        if self.refs is not None:
            self.refs.end()
            self.refs = None
        return 0

    cdef int file_closes(self, object refs) except -1:
        if self.refs is refs:
            self.loop.engine.cancel(self)
            self.future = None  # which never completes
            self.forget()
        return 0

    cdef object act(self):
        """Make the system call: returns the coroutine's result, or WAIT."""
        return None

    cdef object call_method(self, str name, tuple arguments):
        """Call a Python method of the socket: returns its result, or WAIT if it would block."""
        try:
            return getattr(self.sock, name)(*arguments)
        except (BlockingIOError, InterruptedError):
            return WAIT

    cdef int unless_blocked(self, int error) except -1:
        """True: wait. False: try again. Raises all other errors."""
        if error == EAGAIN:
            return True
        if error == EINTR:
            return False
        return fail(error)

    cdef int attempt(self, uint32_t *flags) noexcept:
        # This makes no system call: `act` found the socket not ready just before the submission, and tries again when epoll
        # reports readiness, whether that report is right or not.
        self.readiness_known = not self.readiness_known
        return -EAGAIN if self.readiness_known else <int> self.events


cdef class SockRecv(SockOp):
    cdef object act(self):
        cdef char scratch[SCRATCH]
        cdef ssize_t got
        cdef Hint *hint = hint_for(self.fd, self.sock)
        if self.res == 0:
            # The first call: it has not waited for readiness yet.
            self.size = self.wanted_size
            if self.size < 0:
                return self.sock.recv(self.wanted_size)  # raises the right exception
            if hint is not NULL and hint.drained == self.loop.turns and self.loop.runner:
                return WAIT
        if self.by_method:
            return self.call_method("recv", (self.wanted_size,))
        if self.size == 0:
            return b""
        if self.size > SCRATCH or hint is not NULL and hint.large:
            return self._large()
        while True:
            got = c_recv(self.fd, scratch, self.size, MSG_DONTWAIT)
            if got >= 0:
                give_hint(self, got)
                return PyBytes_FromStringAndSize(scratch, got)
            if self.unless_blocked(errno):
                return WAIT

    cdef object _large(self):
        """Receive directly into the bytes object, and then cut that to size."""
        cdef ssize_t got = -1
        cdef object data
        while True:
            data = receive_bytes(self.fd, self.size, MSG_DONTWAIT, &got)
            if data is not None:
                give_hint(self, got)
                return data
            if self.unless_blocked(errno):
                return WAIT


cdef inline Hint *hint_for(int fd, object sock) noexcept:
    return &hints[fd] if 0 <= fd < HINTED and hints[fd].sock == <PyObject *> sock else NULL


cdef inline void give_hint(SockRecv op, Py_ssize_t got) noexcept:
    cdef Hint *hint
    if op.fd < HINTED:
        hint = &hints[op.fd]
        hint.sock = <PyObject *> op.sock
        hint.drained = op.loop.turns if 0 < got < op.size else -1
        hint.large = got >= LARGE


cdef class SockRecvInto(SockOp):
    cdef object act(self):
        cdef Py_buffer view
        cdef ssize_t got
        if self.by_method:
            return self.call_method("recv_into", (self.buffer,))
        try:
            PyObject_GetBuffer(self.buffer, &view, PyBUF_WRITABLE)
        except (BufferError, TypeError):
            return self.sock.recv_into(self.buffer)  # raises the right exception
        try:
            while True:
                # As recv_into does: make no call for an empty buffer, which consumes no EOF either.
                got = c_recv(self.fd, view.buf, view.len, MSG_DONTWAIT) if view.len else 0
                if got >= 0:
                    return got
                if self.unless_blocked(errno):
                    return WAIT
        finally:
            PyBuffer_Release(&view)


cdef class SockRecvFrom(SockOp):
    cdef object act(self):
        cdef char scratch[SCRATCH]
        cdef sockaddr_storage raw
        cdef socklen_t length
        cdef ssize_t got
        self.size = self.wanted_size
        if self.size < 0 or self.size > SCRATCH or not address_is_known(family_of(self.sock)):
            return self.call_method("recvfrom", (self.wanted_size,))
        while True:
            length = sizeof(raw)
            got = c_recvfrom(self.fd, scratch, self.size, MSG_DONTWAIT, <sockaddr *> &raw, &length)
            if got >= 0:
                return (PyBytes_FromStringAndSize(scratch, got), address_from_raw(&raw, length))
            if self.unless_blocked(errno):
                return WAIT


cdef class SockRecvFromInto(SockOp):
    cdef object act(self):
        cdef Py_buffer view
        cdef sockaddr_storage raw
        cdef socklen_t length
        cdef ssize_t got
        cdef Py_ssize_t size
        size = self.wanted_size or len(self.buffer)
        try:
            PyObject_GetBuffer(self.buffer, &view, PyBUF_WRITABLE)
        except (BufferError, TypeError):
            return self.sock.recvfrom_into(self.buffer, size)  # raises the right exception
        try:
            if size < 0 or size > view.len or not address_is_known(family_of(self.sock)):
                return self.call_method("recvfrom_into", (self.buffer, size))
            while True:
                length = sizeof(raw)
                got = c_recvfrom(self.fd, view.buf, size, MSG_DONTWAIT, <sockaddr *> &raw, &length)
                if got >= 0:
                    return (got, address_from_raw(&raw, length))
                if self.unless_blocked(errno):
                    return WAIT
        finally:
            PyBuffer_Release(&view)


cdef class SockSendAll(SockOp):
    cdef int stop(self) except -1:
        self.data = self.data_view = None
        return SockOp.stop(self)

    cdef object first(self):
        try:
            return SockOp.first(self)
        except BaseException:
            self.data = self.data_view = None  # the exception's traceback may keep this object alive
            raise

    cdef object again(self):
        try:
            return SockOp.again(self)
        except BaseException:
            self.data = self.data_view = None
            raise

    cdef object act(self):
        cdef Py_buffer view
        cdef object outcome, data = self.data
        if self.by_method:
            return self._by_method()
        if type(data) is bytes:
            return self._send_rest(PyBytes_AS_STRING(data), PyBytes_GET_SIZE(data))
        if self.data_view is not None:
            return self._send_rest(<const char *> PyMemoryView_GET_BUFFER(self.data_view).buf,
                                   PyMemoryView_GET_BUFFER(self.data_view).len)
        PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)
        try:
            outcome = self._send_rest(<const char *> view.buf if view.len else PyBytes_AS_STRING(_EMPTY), view.len)
            if outcome is WAIT:
                self.data_view = PyMemoryView_FromObject(data)
        finally:
            PyBuffer_Release(&view)
        return outcome

    cdef object _send_rest(self, const char *start, Py_ssize_t size):
        cdef ssize_t count
        cdef int error
        while True:
            count = c_send(self.fd, start + self.count, size - self.count, MSG_DONTWAIT | MSG_NOSIGNAL)
            if count < 0:
                error = errno
                if error == EAGAIN:
                    return WAIT
                if error != EINTR:
                    fail(error)
                continue
            self.count += count
            if self.count >= size:
                self.data = self.data_view = None
                return None

    cdef object _by_method(self):
        while True:
            count = self.call_method("send", (self.data,))
            if count is WAIT:
                return WAIT
            self.data = memoryview(self.data)[count:]
            if not self.data:
                return None


cdef class SockSendTo(SockOp):
    cdef object act(self):
        cdef sockaddr_storage raw
        cdef socklen_t length = 0
        cdef Py_buffer view
        cdef ssize_t count
        if not raw_from_address(family_of(self.sock), self.address, &raw, &length):
            return self.call_method("sendto", (self.data, self.address))
        PyObject_GetBuffer(self.data, &view, PyBUF_SIMPLE)
        try:
            while True:
                count = c_sendto(self.fd, view.buf, view.len, MSG_DONTWAIT | MSG_NOSIGNAL, <sockaddr *> &raw, length)
                if count >= 0:
                    return count
                if self.unless_blocked(errno):
                    return WAIT
        finally:
            PyBuffer_Release(&view)


cdef class SockAccept(SockOp):
    cdef object act(self):
        cdef sockaddr_storage raw
        cdef socklen_t length
        cdef int fd
        cdef int family = family_of(self.sock)
        if not address_is_known(family):
            return self._by_method()
        while True:
            length = sizeof(raw)
            fd = c_accept4(self.fd, <sockaddr *> &raw, &length, SOCK_CLOEXEC | SOCK_NONBLOCK)
            if fd >= 0:
                connection = _Socket(family, _type(self.sock), _proto(self.sock), fd)
                connection.setblocking(False)
                return (connection, address_from_raw(&raw, length))
            if self.unless_blocked(errno):
                return WAIT

    def _by_method(self):
        accepted = self.call_method("accept", ())
        if accepted is WAIT:
            return WAIT
        connection, address = accepted
        connection.setblocking(False)
        return connection, address


cdef class SockWritable(SockOp):
    cdef object first(self):
        self.fd = self.sock.fileno()
        return WAIT

    cdef object again(self):
        self.forget()
        return ReadyOp.again(self)


cdef int family_of(object sock) except -1:
    """The socket's address family. 0 (AF_UNSPEC) for an object that only looks like a socket; -1 would be an error."""
    if type(sock) is _Socket:
        return _family(sock)
    return 0


# Methods of EventLoop: `self` is the loop.

cdef inline int _begin(SockOp op, Loop loop, object sock, bint write) except -1:
    op.loop = loop
    op.sock = sock
    op.events = POLLOUT if write else POLLIN
    op.need = NEED_WRITE if write else NEED_READ
    op.repeatable = True
    return 0


def sock_recv(Loop self, sock, n):
    """Receive up to n bytes."""
    cdef SockRecv op = SockRecv.__new__(SockRecv)
    _begin(op, self, sock, False)
    op.wanted_size = n
    return op


def sock_recv_into(Loop self, sock, buf):
    """Receive into a writable buffer; returns the number of bytes."""
    cdef SockRecvInto op = SockRecvInto.__new__(SockRecvInto)
    _begin(op, self, sock, False)
    op.buffer = buf
    return op


def sock_recvfrom(Loop self, sock, bufsize):
    """Receive a datagram of up to bufsize bytes; returns it with the sender's address."""
    cdef SockRecvFrom op = SockRecvFrom.__new__(SockRecvFrom)
    _begin(op, self, sock, False)
    op.wanted_size = bufsize
    return op


def sock_recvfrom_into(Loop self, sock, buf, nbytes=0):
    """Receive a datagram into a writable buffer; returns the number of bytes and the sender's address."""
    cdef SockRecvFromInto op = SockRecvFromInto.__new__(SockRecvFromInto)
    _begin(op, self, sock, False)
    op.buffer = buf
    op.wanted_size = nbytes
    return op


def sock_sendall(Loop self, sock, data):
    """Send all of the data."""
    cdef SockSendAll op = SockSendAll.__new__(SockSendAll)
    _begin(op, self, sock, True)
    op.data = data
    return op


def sock_sendto(Loop self, sock, data, address):
    """Send a datagram; returns the number of bytes."""
    cdef SockSendTo op = SockSendTo.__new__(SockSendTo)
    _begin(op, self, sock, True)
    op.data = data
    op.address = address
    return op


def sock_accept(Loop self, sock):
    """Accept a connection; returns its non-blocking socket and the peer's address."""
    cdef SockAccept op = SockAccept.__new__(SockAccept)
    _begin(op, self, sock, False)
    return op


def until_sock_writable(Loop loop, sock):
    """A coroutine that ends when the socket is writable."""
    cdef SockWritable op = SockWritable.__new__(SockWritable)
    _begin(op, loop, sock, True)
    return op


for method in (sock_recv, sock_recv_into, sock_recvfrom, sock_recvfrom_into, sock_sendall, sock_sendto, sock_accept):
    returns_coroutine(method)
del method

ur_sock_recvs_install(<object> SockRecv)
ur_sock_sends_install(<object> SockSendAll)


ur_abstract(SockOp)
ur_only_core_makes(SockRecv)
ur_only_core_makes(SockRecvInto)
ur_only_core_makes(SockRecvFrom)
ur_only_core_makes(SockRecvFromInto)
ur_only_core_makes(SockSendAll)
ur_only_core_makes(SockSendTo)
ur_only_core_makes(SockAccept)
ur_only_core_makes(SockWritable)
