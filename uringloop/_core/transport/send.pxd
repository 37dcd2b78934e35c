from uringloop._core.engine.engine cimport Engine
from uringloop._core.engine.op cimport Op
from uringloop._core.kernel.libc cimport iovec, msghdr
from uringloop._core.transport.transport cimport Transport


cdef enum:
    PIECES_A_SEND = 64

cdef enum SendOutcome:
    SEND_QUEUED     # all of it is sent, or will be when the turn ends
    SEND_BACKLOG    # the socket doesn't take it, and the queue is longer than the caller wants

cdef struct Gather:
    # A message of many pieces, made only for transports that need one.
    msghdr header
    iovec pieces[PIECES_A_SEND]


cdef class SendOp(Op):
    # The loop's thread only.
    cdef Transport transport    # None once the transport has finished sending
    cdef Engine engine
    cdef bytes head             # the bytes being sent, or to be sent next
    cdef list tail              # the bytes after them, or None
    cdef Py_ssize_t offset      # how much of `head` is sent
    cdef Py_ssize_t size        # bytes not sent yet, including those in the kernel
    cdef Py_ssize_t in_flight   # bytes of these that are in the kernel
    cdef Py_ssize_t limit       # the most bytes in the kernel at once
    cdef Gather *gather         # NULL until it is needed
    cdef bint blocked           # the socket was full: wait until it is writable first
    cdef bint took_large_write  # the socket has taken all of a large write at once before
    cdef bint must_tell         # the transport waits for the end of a send; it alone sets this
    cdef int result             # the kernel's last result
    cdef bint has_result

    cdef int write(self, bytes data, Py_ssize_t high) except? -32000
    cdef int push(self, Py_ssize_t high) except? -32000
    cdef int append(self, bytes data) except -1
    cdef int try_now(self) noexcept
    cdef bint may_gather(self, Py_ssize_t high) noexcept
    cdef int start(self) except -1
    cdef int failure(self) noexcept
    cdef void drop(self) noexcept
    cdef int _pieces(self) noexcept
    cdef void _sent(self, Py_ssize_t count) noexcept
    cdef ssize_t _send(self, int pieces) noexcept
