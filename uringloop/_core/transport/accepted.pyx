# Accepted and Accepting: an accepted connection until its protocol has its transport, and a task that stands for all of
# these of one loop.
#
# In asyncio each has a task of its own, `_accept_connection2`. Programs find it in `all_tasks()`, and by cancelling it they close a
# connection that no task of their own serves yet. Such a task would make a connection 5 to 8 % more expensive (16,500
# instructions in place of 1,500, CPython 3.11), so one object stands for all: asyncio knows it as a task from the first
# connection on, and it is done whenever no connection is being set up.
#
# The calls come in the same turns as in asyncio: connection_made one turn after the factory, and one turn later the
# connection is set up.
import contextvars
from asyncio import exceptions, format_helpers, tasks

from cpython.object cimport PyObject

from uringloop._core.cpython.context cimport context_enter, context_exit
from uringloop._core.engine.ready_queue cimport Runnable, ready_push
from uringloop._core.kernel.libc cimport c_close
from uringloop._core.loop.loop cimport Loop
from uringloop._core.lifetime.guard cimport ur_load_flag, ur_only_core_makes
from uringloop._core.transport.stream cimport StreamTransport, accept_stream_transport
from uringloop._core.transport.transport cimport TRANSPORT_CLOSING


cdef int _call_soon(Loop loop, Runnable node) except -1:
    """Queue it behind the work that other threads have submitted by now, as call_soon() does."""
    if ur_load_flag(&loop.inbox.filled):
        loop.inbox.take(loop.ready)
    ready_push(loop.ready, node)
    return 0


cdef class Accepted(Runnable):
    cdef int begin(self, int fd, object protocol, object cvars) except -1:
        cdef Loop loop = self.accepting.loop
        if loop is None:
            raise RuntimeError("Event loop is closed")
        if loop._debug:
            self.listener.log_connection(fd)
        self.transport = accept_stream_transport(loop, fd, protocol, self.listener._server, cvars)
        _call_soon(loop, self)
        return 0

    cdef int run(self, object loop) except -1:
        if not self.introduced:
            return self.introduce()
        return self.end()

    cdef int introduce(self) except -1:
        cdef StreamTransport transport = self.transport
        self.introduced = True
        try:
            transport.call("connection_made", transport)
        except (SystemExit, KeyboardInterrupt):
            raise
        except BaseException as error:
            if transport._protocol is None:
                transport._report(error, "Error on transport creation for incoming connection")
                transport.force_close(None)  # no protocol will read from it or close it
            else:
                method = getattr(transport._protocol, "connection_made", transport._protocol)
                described = format_helpers._format_callback_source(method, (transport,))
                transport._report(error, f"Exception in callback {described}")
        finally:  # also if an exception leaves the loop, for its next run
            if transport.state < TRANSPORT_CLOSING:
                transport.begin_reading()
            if self.cancelled:
                self.end()
            else:
                _call_soon(transport._loop, self)
        return 0

    cdef int end(self) except -1:
        cdef StreamTransport transport = self.transport
        cdef object listener = self.listener
        self.accepting.left(self)
        if self.cancelled:
            transport.close()
            listener.report(exceptions.CancelledError(), transport._protocol, transport)
        return 0

    cdef object culprit(self):
        return self.transport

    cdef void dropped(self) noexcept:
        cdef Accepting accepting = self.accepting
        # In the interpreter's last collection, the collector may have taken us and Accepting apart before the queue.
        if accepting is not None and accepting.pending is not None:
            accepting.pending.pop(self, None)


cdef class Accepting:
    """The task that `all_tasks()` shows while connections are being set up."""

    def __cinit__(self, Loop loop):
        self.loop = loop
        self.pending = {}
        self.callbacks = []
        self.name = "accepting"
        tasks._register_task(self)

    @property
    def __class__(self):
        return tasks.Task

    def __repr__(self):
        return f"<Accepting connections={len(self.pending)}>"

    cdef int left(self, Accepted accepted) except -1:
        self.pending.pop(accepted, None)
        if not self.pending and self.callbacks:
            callbacks, self.callbacks = self.callbacks, []
            for callback, cvars in callbacks:
                (<object> self.loop).call_soon(callback, self, context=cvars)
        return 0

    def close(self):
        """The loop closes."""
        tasks._unregister_task(self)
        self.loop = None

    # The interface of a task that asyncio and programs use

    def cancel(self, msg=None):
        """Close the connections being set up, each as soon as connection_made was called."""
        cdef Accepted accepted
        for accepted in self.pending:
            accepted.cancelled = True
        return len(self.pending) > 0

    def done(self):
        return not self.pending

    def cancelled(self):
        return False

    def cancelling(self):
        return 0

    def uncancel(self):
        return 0

    def result(self):
        return None

    def exception(self):
        return None

    def add_done_callback(self, callback, *, context=None):
        if context is None:
            context = contextvars.copy_context()
        if self.pending:
            self.callbacks.append((callback, context))
        else:
            (<object> self.loop).call_soon(callback, self, context=context)

    def remove_done_callback(self, callback):
        left = [each for each in self.callbacks if each[0] != callback]
        count = len(self.callbacks) - len(left)
        self.callbacks = left
        return count

    def __await__(self):
        if self.pending:
            self._asyncio_future_blocking = True
            yield self

    __iter__ = __await__

    def get_loop(self):
        return self.loop

    @property
    def _loop(self):
        return self.loop

    def get_coro(self):
        return None

    def get_context(self):
        return None

    def get_name(self):
        return self.name

    def set_name(self, value):
        self.name = str(value)

    def get_stack(self, *, limit=None):
        return []

    def print_stack(self, *, limit=None, file=None):
        print(f"No stack for {self!r}", file=file)


cdef Accepting _accepting_of(Loop loop):
    """The Accepting of the loop; only in its thread."""
    cdef Accepting accepting = (<object> loop)._accepting
    if accepting is None:
        accepting = Accepting.__new__(Accepting, loop)
        (<object> loop)._accepting = accepting
        (<object> loop)._at_close.append(accepting.close)
    return accepting


def connected(listener, int fd):
    """Listener.connected: begin to set up a connection; its descriptor is ours from now on."""
    cdef Accepted accepted
    cdef object cvars, protocol = None
    cdef bint with_tls
    try:
        listener._failing = False
        cvars = listener._context.copy()  # a copy: the variables that one connection's callbacks set are not the others'
        accepted = Accepted.__new__(Accepted)
        accepted.accepting = _accepting_of(<Loop> listener._loop)
        accepted.listener = listener
        with_tls = listener._sslcontext is not None
        if not with_tls:
            accepted.accepting.pending[accepted] = None
    except BaseException:
        c_close(fd)
        raise
    if with_tls:
        listener.begin_handshake(fd, cvars)
        return
    try:
        context_enter(<PyObject *> cvars)
        try:
            protocol = listener._protocol_factory()
        finally:
            context_exit(<PyObject *> cvars)
        accepted.begin(fd, protocol, cvars)
    except BaseException as error:  # begin()'s: the factory has closed its server, for one
        accepted.accepting.left(accepted)
        if accepted.transport is None:
            c_close(fd)
        if isinstance(error, (SystemExit, KeyboardInterrupt)):
            raise
        listener.report(error, protocol, None)


ur_only_core_makes(Accepted)
ur_only_core_makes(Accepting)
