from libc.stdint cimport int64_t

from uringloop._core.kernel.libc cimport iovec, mmsghdr, sockaddr_storage, socklen_t
from uringloop._core.transport.address_cache cimport NAME

cdef enum:
    BATCH = 32            # datagrams a system call receives
    MOST = 64             # the most datagrams gathered, and the most that the kernel cuts one message into
    CONTROL = 24          # CMSG_SPACE(sizeof(uint16_t))


cdef struct Batch:
    # The messages as recvmmsg wants them.
    mmsghdr messages[BATCH]
    iovec pieces[BATCH]
    char names[BATCH][NAME]


cdef class ReceiveRoom:
    # One a loop, used between a system call and the copying of what it brought, with no Python code in between.
    cdef Batch batch
    cdef char *area
    cdef char *large      # for what is no UDP: one datagram at a time, however large


cdef class DatagramBatch:
    # One per transport. Only the loop's thread uses it, and no Python code runs while it sends.
    cdef int count
    cdef int64_t since_ns                # when the first was added
    cdef list data                       # the objects that the pieces point to
    cdef Py_ssize_t joined_below         # the kernel refuses to join datagrams of this size or larger
    cdef int by_itself                   # datagrams before this one are sent one by one: they were refused just now
    cdef iovec pieces[MOST]
    cdef char names[MOST][NAME]
    cdef socklen_t lengths[MOST]
    cdef mmsghdr messages[MOST]
    cdef char controls[MOST][CONTROL]

    cdef int add(self, bytes data, sockaddr_storage *raw, socklen_t length) except -1
    cdef int send(self, int fd, int *failures, int *failed) noexcept
    cdef list take(self, list fresh)
    cdef Py_ssize_t size(self) noexcept
    cdef int _compose(self, int fd, int first) noexcept
    cdef int _run_from(self, int first) noexcept
    cdef void _refused(self, int first, int error) noexcept
