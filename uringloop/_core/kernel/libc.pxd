# Declarations of libc: sockets, eventfd, epoll, poll, mmap. A header that only one file needs is declared in that file.
from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t, uint64_t


cdef extern from "<errno.h>" nogil:
    int errno
    int EPERM, ENOENT, EINTR, EIO, EBADF, EAGAIN, ENOMEM, EACCES, EBUSY, EEXIST, EINVAL, ENFILE, EMFILE
    int ENOSYS, ETIME, ECANCELED, ENOBUFS, EALREADY, EINPROGRESS, EISCONN, ECONNABORTED, ECONNRESET
    int EPIPE, ENOTCONN, ENOTSOCK, EOPNOTSUPP, ECONNREFUSED, ESHUTDOWN, EMSGSIZE, EOVERFLOW


cdef extern from "<sys/mman.h>" nogil:
    void *MAP_FAILED
    int PROT_READ, PROT_WRITE, MAP_SHARED, MAP_PRIVATE, MAP_POPULATE, MAP_ANONYMOUS, MADV_DONTFORK
    void *mmap(void *addr, size_t length, int prot, int flags, int fd, int64_t offset)
    int munmap(void *addr, size_t length)
    int madvise(void *addr, size_t length, int advice)


cdef extern from "<unistd.h>" nogil:
    ssize_t c_read "read"(int fd, void *buf, size_t count)
    ssize_t c_write "write"(int fd, const void *buf, size_t count)
    int c_close "close"(int fd)
    int getpid()


cdef extern from "<sys/eventfd.h>" nogil:
    int EFD_CLOEXEC, EFD_NONBLOCK
    int eventfd(unsigned initval, int flags)


cdef extern from "<sys/epoll.h>" nogil:
    int EPOLL_CLOEXEC, EPOLL_CTL_ADD, EPOLL_CTL_MOD, EPOLL_CTL_DEL
    uint32_t EPOLLIN, EPOLLOUT, EPOLLERR, EPOLLHUP, EPOLLRDHUP, EPOLLPRI
    union epoll_data:
        int fd
        uint64_t u64
    struct epoll_event:
        uint32_t events
        epoll_data data
    int epoll_create1(int flags)
    int epoll_ctl(int epfd, int op, int fd, epoll_event *event)
    int epoll_wait(int epfd, epoll_event *events, int maxevents, int timeout)


cdef extern from "<poll.h>" nogil:
    struct pollfd:
        int fd
        short events
        short revents
    short POLLIN, POLLOUT, POLLERR, POLLHUP, POLLNVAL
    int c_poll "poll"(pollfd *fds, unsigned long nfds, int timeout)


cdef extern from "<sys/socket.h>" nogil:
    ctypedef unsigned socklen_t
    struct sockaddr:
        unsigned short sa_family
    struct sockaddr_storage:
        unsigned short ss_family
    struct iovec:
        void *iov_base
        size_t iov_len
    struct msghdr:
        void *msg_name
        socklen_t msg_namelen
        iovec *msg_iov
        size_t msg_iovlen
        void *msg_control
        size_t msg_controllen
        int msg_flags
    struct mmsghdr:
        msghdr msg_hdr
        unsigned msg_len
    int MSG_DONTWAIT, MSG_WAITALL, MSG_NOSIGNAL, MSG_TRUNC, MSG_PEEK
    int SOCK_NONBLOCK, SOCK_CLOEXEC, SOL_SOCKET, SO_ERROR, SHUT_WR, SHUT_RDWR
    int AF_INET, AF_INET6, AF_UNIX
    ssize_t c_recv "recv"(int fd, void *buf, size_t len, int flags)
    ssize_t c_send "send"(int fd, const void *buf, size_t len, int flags)
    ssize_t c_recvmsg "recvmsg"(int fd, msghdr *msg, int flags)
    ssize_t c_sendmsg "sendmsg"(int fd, const msghdr *msg, int flags)
    int recvmmsg(int fd, mmsghdr *messages, unsigned count, int flags, void *timeout)
    int sendmmsg(int fd, mmsghdr *messages, unsigned count, int flags)
    ssize_t c_recvfrom "recvfrom"(int fd, void *buf, size_t len, int flags, sockaddr *addr, socklen_t *addrlen)
    ssize_t c_sendto "sendto"(int fd, const void *buf, size_t len, int flags, const sockaddr *addr, socklen_t addrlen)
    int c_accept4 "accept4"(int fd, sockaddr *addr, socklen_t *len, int flags)
    int c_connect "connect"(int fd, const sockaddr *addr, socklen_t len)
    int c_shutdown "shutdown"(int fd, int how)
    int getsockopt(int fd, int level, int name, void *value, socklen_t *len)


cdef extern from "<netinet/in.h>" nogil:
    struct in_addr:
        uint32_t s_addr
    struct sockaddr_in:
        unsigned short sin_family
        uint16_t sin_port
        in_addr sin_addr
    struct in6_addr:
        uint8_t s6_addr[16]
    struct sockaddr_in6:
        unsigned short sin6_family
        uint16_t sin6_port
        uint32_t sin6_flowinfo
        in6_addr sin6_addr
        uint32_t sin6_scope_id
    uint16_t htons(uint16_t v)
    uint16_t ntohs(uint16_t v)
    uint32_t htonl(uint32_t v)
    uint32_t ntohl(uint32_t v)


cdef extern from "<arpa/inet.h>" nogil:
    const char *inet_ntop(int family, const void *raw, char *text, socklen_t size)
    int inet_pton(int family, const char *text, void *raw)


cdef extern from "<sys/un.h>" nogil:
    struct sockaddr_un:
        unsigned short sun_family
        char sun_path[108]
