# DatagramBatch and ReceiveRoom: the datagrams that one system call sends or receives. ReceiveRoom owns the memory they
# arrive in, and its description for the kernel; it receives nothing itself.
#
# DatagramBatch holds the answers a datagram transport gathers, and sends them. A run of datagrams of one
# size for one address is one message, which the kernel cuts up at the end of its way (UDP_SEGMENT): most of a
# datagram's cost is that way. Owns the datagrams until they are taken.
#
# If the kernel refuses such a message (the datagrams are too large for the network's packets, checksums are off, a tunnel
# is behind), they are sent one by one, and so are all of that size from then on. Each socket is asked for the option: only
# UDP sockets have it, and a program may already use it itself.
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from libc.string cimport memcmp, memcpy

from uringloop._core.kernel.abi cimport ur_now_ns
from uringloop._core.kernel.libc cimport (
    EAGAIN, EINTR, EINVAL, EMSGSIZE, MAP_ANONYMOUS, MAP_FAILED, MAP_PRIVATE, MSG_DONTWAIT, MSG_NOSIGNAL, PROT_READ,
    PROT_WRITE, errno, mmap, munmap, sendmmsg,
)
from uringloop._core.kernel.probe cimport cuts_datagrams

cdef extern from * nogil:
    """
    #include <netinet/in.h>
    #include <netinet/udp.h>
    #include <sys/socket.h>
    #ifndef UDP_SEGMENT
    #define UDP_SEGMENT 103
    #endif
    static inline size_t ur_segment_control(char *control, uint16_t size) {
        struct cmsghdr *head = (struct cmsghdr *)control;
        head->cmsg_level = IPPROTO_UDP;
        head->cmsg_type = UDP_SEGMENT;
        head->cmsg_len = CMSG_LEN(sizeof(size));
        memcpy(CMSG_DATA(head), &size, sizeof(size));
        return CMSG_SPACE(sizeof(size));
    }
    static inline int ur_can_be_cut(int fd) {
        int own = 0, failed = errno;
        socklen_t length = sizeof(own);
        int can = getsockopt(fd, IPPROTO_UDP, UDP_SEGMENT, &own, &length) == 0 && own == 0;
        errno = failed;
        return can;
    }
    """
    size_t ur_segment_control(char *control, int size)
    bint ur_can_be_cut(int fd)

cdef enum:
    LARGEST_UDP = 65536
    LARGEST_MESSAGE = 65000  # the total of its datagrams: an IP packet carries no more
    # Not a power of two, or the first bytes of all datagrams would compete for the same cache lines.
    STRIDE = 65536 + 1088


cdef class ReceiveRoom:
    def __cinit__(self):
        cdef int i
        self.area = <char *> mmap(NULL, BATCH * STRIDE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
        if <void *> self.area == MAP_FAILED:
            self.area = NULL
            raise MemoryError
        self.large = self.area  # a datagram alone may use several places
        for i in range(BATCH):
            self.batch.pieces[i].iov_base = self.area + i * STRIDE
            self.batch.pieces[i].iov_len = LARGEST_UDP
            self.batch.messages[i].msg_hdr.msg_iov = &self.batch.pieces[i]
            self.batch.messages[i].msg_hdr.msg_iovlen = 1
            self.batch.messages[i].msg_hdr.msg_name = self.batch.names[i]

    def __dealloc__(self):
        if self.area is not NULL:
            munmap(self.area, BATCH * STRIDE)


cdef class DatagramBatch:
    def __cinit__(self):
        self.data = []
        self.joined_below = LARGEST_MESSAGE if cuts_datagrams() else 0

    cdef int add(self, bytes data, sockaddr_storage *raw, socklen_t length) except -1:
        """Add a datagram. The caller sends when there are MOST."""
        cdef int i = self.count
        if i == 0:
            self.since_ns = ur_now_ns()
        self.data.append(data)
        memcpy(self.names[i], raw, length)
        self.lengths[i] = length
        self.pieces[i].iov_base = PyBytes_AS_STRING(data)
        self.pieces[i].iov_len = PyBytes_GET_SIZE(data)
        self.count = i + 1
        return 0

    cdef int send(self, int fd, int *failures, int *failed) noexcept:
        """Send the datagrams of an unconnected socket. Not for connected ones: sendmmsg drops an error that comes after a
        message it has sent, and on a connected socket a retry may not repeat that error.

        Return how many are done, including those that failed; the socket has no room for the rest. `failures` must hold MOST
        errors."""
        cdef int first = 0, sent, i
        self.by_itself = 0
        while first < self.count:
            sent = sendmmsg(fd, self.messages, self._compose(fd, first), MSG_DONTWAIT | MSG_NOSIGNAL)
            if sent > 0:
                for i in range(sent):
                    first += <int> self.messages[i].msg_hdr.msg_iovlen
            elif errno == EAGAIN:
                break
            elif errno == EINTR:
                continue
            elif self.messages[0].msg_hdr.msg_iovlen > 1:
                self._refused(first, errno)
            else:
                failures[failed[0]] = errno
                failed[0] += 1
                first += 1
        return first

    cdef void _refused(self, int first, int error) noexcept:
        """The kernel refused to join these datagrams: send them one by one, to find out which of them it refuses."""
        self.by_itself = first + <int> self.messages[0].msg_hdr.msg_iovlen
        if error == EINVAL or error == EMSGSIZE:
            self.joined_below = min(self.joined_below, <Py_ssize_t> self.pieces[first].iov_len)

    cdef int _compose(self, int fd, int first) noexcept:
        """Make messages of all datagrams from the first on; return how many."""
        cdef mmsghdr *message
        cdef int run, made = 0
        cdef bint asked = False, joins = self.joined_below > 0
        while first < self.count:
            run = self._run_from(first) if joins and first >= self.by_itself else 1
            if run > 1 and not asked:
                asked, joins = True, ur_can_be_cut(fd)
                if not joins:
                    run = 1
            message = &self.messages[made]
            message.msg_hdr.msg_name = self.names[first]
            message.msg_hdr.msg_namelen = self.lengths[first]
            message.msg_hdr.msg_iov = &self.pieces[first]
            message.msg_hdr.msg_iovlen = run
            message.msg_hdr.msg_control = self.controls[made] if run > 1 else NULL
            message.msg_hdr.msg_controllen = 0
            if run > 1:
                message.msg_hdr.msg_controllen = ur_segment_control(self.controls[made], <int> self.pieces[first].iov_len)
            first += run
            made += 1
        return made

    cdef int _run_from(self, int first) noexcept:
        """How many datagrams have the first one's size and address; the last of them may be smaller."""
        cdef Py_ssize_t size = self.pieces[first].iov_len, total = size, this
        cdef int i = first + 1
        if not 0 < size < self.joined_below:
            return 1
        while i < self.count:
            this = self.pieces[i].iov_len
            total += this
            if not 0 < this <= size or total > LARGEST_MESSAGE or self.lengths[i] != self.lengths[first]:
                break
            if memcmp(self.names[i], self.names[first], self.lengths[first]) != 0:
                break
            i += 1
            if this < size:
                break
        return i - first

    cdef list take(self, list fresh):
        """Take all datagrams; `fresh` becomes the new, empty list."""
        data, self.data, self.count = self.data, fresh, 0
        return data

    cdef Py_ssize_t size(self) noexcept:
        cdef Py_ssize_t size = 0
        cdef int i
        for i in range(self.count):
            size += self.pieces[i].iov_len
        return size
