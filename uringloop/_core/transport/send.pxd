from uringloop._core.engine.engine cimport Engine
from uringloop._core.engine.op cimport Op
from uringloop._core.kernel.libc cimport iovec, msghdr
from uringloop._core.transport.transport cimport Transport


cdef enum:
    PIECES_A_SEND = 64

cdef struct Gather:
    # A message of many pieces, made only by transports that need one.
    msghdr header
    iovec pieces[PIECES_A_SEND]


cdef class SendOp(Op):
    # The loop's thread only.
    cdef Transport transport    # None once the transport is done with sending
    cdef Engine engine
    cdef bytes head             # what is sent next, or being sent
    cdef list tail              # what comes behind, or None
    cdef Py_ssize_t offset      # how much of `head` is sent
    cdef Py_ssize_t size        # bytes not sent yet, in the kernel or not
    cdef Py_ssize_t in_flight   # of those, handed to the kernel
    cdef Py_ssize_t limit       # ... which is no more than this at once
    cdef Gather *gather         # not NULL once it was needed
    cdef bint blocked           # the socket was full: wait until it is writable first
    cdef bint took_large_write  # it has taken all of a large write at once before
    cdef int result             # what the kernel said last
    cdef bint has_result

    cdef int append(self, bytes data) except -1
    cdef int try_now(self) noexcept
    cdef bint may_gather(self, Py_ssize_t high) noexcept
    cdef int start(self) except -1
    cdef int failure(self) noexcept
    cdef void drop(self) noexcept
    cdef int _pieces(self) noexcept
    cdef void _sent(self, Py_ssize_t count) noexcept
    cdef ssize_t _send(self, int pieces) noexcept
