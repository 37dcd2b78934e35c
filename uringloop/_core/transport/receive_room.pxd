from uringloop._core.kernel.libc cimport iovec, msghdr

cdef extern from "<sys/socket.h>" nogil:
    struct mmsghdr:
        msghdr msg_hdr
        unsigned msg_len

cdef enum:
    BATCH = 32            # datagrams a system call receives
    NAME = 28             # bytes of the longest IP address, a sockaddr_in6


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
