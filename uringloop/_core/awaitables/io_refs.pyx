# IoRefs: replaces `_io_refs` of a socket on which a sock_* coroutine waits, to learn of the socket's close just before it.
# socket.close() compares the number with 0. An operation in the kernel keeps its file open: without this the peer would see
# no end of the connection, and a listener's address would stay in use. To all other code it is a number, and owns only that.
from cpython.object cimport Py_EQ, Py_GE, Py_GT, Py_LE, Py_LT
from cpython.weakref cimport PyWeakref_NewRef

from uringloop._core.awaitables.future_op cimport ReadyOp
from uringloop._core.cpython.canaries import relied_on, sockets_are_as_known
from uringloop._core.loop.loop cimport Loop, runs_here
from uringloop._core.lifetime.guard cimport ur_load_ulong, ur_only_core_makes


cdef class IoRefs:
    cdef int begin(self, Loop loop) except -1:
        """An operation on the socket is about to be submitted."""
        self.loop = PyWeakref_NewRef(loop, None)  # usually returns the loop's existing weak reference
        self.waiting += 1
        return 0

    cdef int end(self) noexcept:
        self.waiting -= 1
        return 0

    cdef int closes(self) except -1:
        """socket.close() closes the descriptor next: cancel the operations first, so that the kernel releases the file."""
        cdef Loop loop
        cdef bint stopped, taken
        cdef list ended = []  # freed last: that may run code that waits for a thread that is about to run the loop
        self.closed = True
        if self.waiting <= 0:
            return 0
        loop = self.loop()
        if loop is None or loop.closed:
            return 0
        if runs_here(loop) or loop.engine.forked:
            return self.end_all(loop, ended)
        taken = loop.engine.acquire_lock()
        try:
            stopped = not ur_load_ulong(&loop.runner)
            if stopped and not loop.closed:
                self.end_all(loop, ended)
        finally:
            if taken:
                loop.engine.release_lock()
        if not stopped:
            try:
                (<object> loop).call_soon_threadsafe(self._closed_elsewhere)
            except RuntimeError:
                pass  # the loop has been closed meanwhile
        return 0

    cdef int end_all(self, Loop loop, list ended) except -1:
        """Cancel the operations on this socket. The caller drops `ended`, which holds their last references."""
        ended.extend(loop.engine.ops)
        for op in list(ended):
            if isinstance(op, ReadyOp):
                future = (<ReadyOp> op).future
                (<ReadyOp> op).file_closes(self)
                if (<ReadyOp> op).future is not future:
                    ended.append(future)
        return loop.engine.flush_now()

    def _closed_elsewhere(self):
        self.closes()

    def __richcmp__(self, other, int how):
        if how == Py_LE:
            if self.count <= other:
                self.closes()
                return True
            return False
        if how == Py_LT:
            return self.count < other
        if how == Py_GT:
            return self.count > other
        if how == Py_GE:
            return self.count >= other
        return self.count == other if how == Py_EQ else self.count != other

    def __hash__(self):
        return hash(self.count)

    def __iadd__(self, long number):
        self.count += number
        return self

    def __isub__(self, long number):
        self.count -= number
        return self

    def __add__(self, other):
        return int(self) + int(other)

    def __sub__(self, other):
        return int(self) - int(other)

    def __int__(self):
        return self.count

    def __index__(self):
        return self.count

    def __repr__(self):
        return repr(self.count)


cdef IoRefs io_refs_of(object sock):
    """The socket's IoRefs, made if needed. None: its `_io_refs` is not a plain number."""
    refs = getattr(sock, "_io_refs", None)
    if type(refs) is IoRefs:
        return <IoRefs> refs
    if type(refs) is not int or not _asked:
        return None
    made = IoRefs.__new__(IoRefs)
    (<IoRefs> made).count = refs
    sock._io_refs = made
    return <IoRefs> made


cdef bint _asked = relied_on("io_refs", sockets_are_as_known())
ur_only_core_makes(IoRefs)
