# The only externs of the core: the io_uring ABI (abi.h), libc's sockets, eventfd and epoll, and the
# guard (guard.h). Kernel spelling is kept. Owns nothing, decides nothing.
from cpython.object cimport PyObject, visitproc, traverseproc
from libc.stdint cimport INT64_MAX, INT64_MIN, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t, uintptr_t


cdef extern from "abi.h" nogil:
    enum: URINGLOOP_DEBUG

    struct io_uring_sqe:
        uint8_t opcode
        uint8_t flags
        uint16_t ioprio
        int32_t fd
        uint64_t off
        uint64_t addr2
        uint64_t addr
        uint64_t splice_off_in
        uint32_t len
        uint32_t rw_flags
        uint32_t fsync_flags
        uint32_t poll32_events
        uint32_t msg_flags
        uint32_t accept_flags
        uint32_t cancel_flags
        uint32_t open_flags
        uint32_t statx_flags
        uint32_t fadvise_advice
        uint32_t splice_flags
        uint32_t rename_flags
        uint32_t unlink_flags
        uint32_t hardlink_flags
        uint32_t waitid_flags
        uint64_t user_data
        uint16_t buf_index
        uint16_t buf_group
        int32_t splice_fd_in
        uint32_t file_index
        uint64_t addr3

    struct io_uring_cqe:
        uint64_t user_data
        int32_t res
        uint32_t flags

    struct io_sqring_offsets:
        uint32_t head
        uint32_t tail
        uint32_t ring_mask
        uint32_t ring_entries
        uint32_t flags
        uint32_t dropped
        uint32_t array

    struct io_cqring_offsets:
        uint32_t head
        uint32_t tail
        uint32_t ring_mask
        uint32_t ring_entries
        uint32_t overflow
        uint32_t cqes
        uint32_t flags

    struct io_uring_params:
        uint32_t sq_entries
        uint32_t cq_entries
        uint32_t flags
        uint32_t features
        io_sqring_offsets sq_off
        io_cqring_offsets cq_off

    struct io_uring_timespec:
        int64_t tv_sec
        long long tv_nsec

    struct io_uring_getevents_arg:
        uint64_t sigmask
        uint32_t sigmask_sz
        uint32_t min_wait_usec
        uint64_t ts

    struct io_uring_rsrc_update:
        uint32_t offset
        uint64_t data

    struct io_uring_rsrc_register:
        uint32_t nr
        uint32_t flags

    struct io_uring_rsrc_update2:
        uint32_t offset
        uint64_t data
        uint32_t nr

    struct io_uring_probe_op:
        uint8_t op
        uint16_t flags

    struct io_uring_probe:
        uint8_t last_op
        uint8_t ops_len
        io_uring_probe_op ops[256]

    struct io_uring_buf:
        uint64_t addr
        uint32_t len
        uint16_t bid
        uint16_t resv

    struct io_uring_buf_reg:
        uint64_t ring_addr
        uint32_t ring_entries
        uint16_t bgid
        uint16_t flags

    uint64_t IORING_OFF_SQ_RING, IORING_OFF_CQ_RING, IORING_OFF_SQES
    uint32_t IORING_SETUP_CQSIZE, IORING_SETUP_CLAMP, IORING_SETUP_R_DISABLED, IORING_SETUP_SUBMIT_ALL
    uint32_t IORING_SETUP_COOP_TASKRUN, IORING_SETUP_TASKRUN_FLAG, IORING_SETUP_SINGLE_ISSUER
    uint32_t IORING_SETUP_DEFER_TASKRUN, IORING_SETUP_NO_SQARRAY
    uint32_t IORING_FEAT_SINGLE_MMAP, IORING_FEAT_NODROP, IORING_FEAT_SUBMIT_STABLE, IORING_FEAT_FAST_POLL
    uint32_t IORING_FEAT_EXT_ARG, IORING_FEAT_CQE_SKIP, IORING_FEAT_MIN_TIMEOUT, IORING_FEAT_NO_IOWAIT
    uint32_t IORING_FEAT_RECVSEND_BUNDLE
    uint32_t IORING_SQ_CQ_OVERFLOW, IORING_SQ_TASKRUN
    uint32_t IORING_ENTER_GETEVENTS, IORING_ENTER_EXT_ARG, IORING_ENTER_REGISTERED_RING
    uint32_t IORING_ENTER_ABS_TIMER, IORING_ENTER_NO_IOWAIT
    uint32_t IORING_REGISTER_PROBE, IORING_REGISTER_ENABLE_RINGS, IORING_REGISTER_RING_FDS
    uint32_t IORING_UNREGISTER_RING_FDS, IORING_REGISTER_PBUF_RING, IORING_UNREGISTER_PBUF_RING
    uint32_t IORING_REGISTER_BUFFERS2, IORING_REGISTER_BUFFERS_UPDATE, IORING_RSRC_REGISTER_SPARSE
    uint32_t IO_URING_OP_SUPPORTED
    uint32_t IOSQE_IO_LINK, IOSQE_ASYNC, IOSQE_BUFFER_SELECT, IOSQE_CQE_SKIP_SUCCESS
    uint32_t IORING_CQE_F_BUFFER, IORING_CQE_F_MORE, IORING_CQE_F_SOCK_NONEMPTY, IORING_CQE_BUFFER_SHIFT
    uint32_t IORING_RECVSEND_POLL_FIRST, IORING_RECV_MULTISHOT, IORING_ACCEPT_MULTISHOT
    uint32_t IORING_RECVSEND_BUNDLE, IORING_POLL_ADD_MULTI, IORING_FSYNC_DATASYNC
    uint8_t IORING_OP_NOP, IORING_OP_FSYNC, IORING_OP_POLL_ADD, IORING_OP_SENDMSG, IORING_OP_RECVMSG
    uint8_t IORING_OP_ACCEPT, IORING_OP_ASYNC_CANCEL, IORING_OP_CONNECT, IORING_OP_FALLOCATE, IORING_OP_OPENAT
    uint8_t IORING_OP_CLOSE, IORING_OP_STATX, IORING_OP_READ, IORING_OP_WRITE, IORING_OP_FADVISE, IORING_OP_SEND
    uint8_t IORING_OP_RECV, IORING_OP_OPENAT2, IORING_OP_SPLICE, IORING_OP_SHUTDOWN, IORING_OP_RENAMEAT
    uint8_t IORING_OP_UNLINKAT, IORING_OP_MKDIRAT, IORING_OP_SYMLINKAT, IORING_OP_LINKAT, IORING_OP_SEND_ZC
    uint8_t IORING_OP_READ_MULTISHOT, IORING_OP_WAITID, IORING_OP_FTRUNCATE, IORING_OP_EPOLL_WAIT, IORING_OP_READV, IORING_OP_WRITEV
    uint8_t IORING_OP_READ_FIXED, IORING_OP_WRITE_FIXED

    int ur_io_uring_setup(unsigned entries, io_uring_params *params)
    int ur_io_uring_enter(int fd, unsigned to_submit, unsigned min_complete, unsigned flags,
                          const void *arg, size_t size)
    int ur_io_uring_register(int fd, unsigned opcode, const void *arg, unsigned count)
    int64_t ur_now_ns()
    int64_t ur_coarse_ns()
    unsigned ur_load_acquire(const unsigned *p)
    unsigned ur_load_relaxed(const unsigned *p)
    void ur_store_release(unsigned *p, unsigned v)
    uint16_t ur_load16_relaxed(const uint16_t *p)
    void ur_store16_release(uint16_t *p, uint16_t v)
    void ur_cpu_relax()


cdef extern from "guard.h" nogil:
    ctypedef struct ur_guard:
        pass
    enum: UR_FREE_THREADED
    void ur_guard_init(ur_guard *g)
    void ur_guard_lock(ur_guard *g)
    void ur_guard_unlock(ur_guard *g)
    void *ur_load_ptr(void **p)
    void ur_store_ptr(void **p, void *v)
    int ur_load_int(const int *p)
    int ur_load_flag(const int *p)
    void ur_store_flag(int *p, int v)
    unsigned long ur_load_ulong(const unsigned long *p)
    void ur_store_ulong(unsigned long *p, unsigned long v)
    int ur_take_ulong(unsigned long *p, unsigned long v)
    void ur_store_int(int *p, int v)
    void ur_add_long(long *p, long v)
    long ur_load_long(const long *p)


cdef extern from "guard.h":
    traverseproc ur_get_traverse(object type)
    void ur_set_traverse(object type, traverseproc visit)
    void ur_set_dealloc(object type, void (*dealloc)(PyObject *) noexcept)
    void ur_only_core_makes(object type)
    void ur_abstract(object type)
    void ur_python_makes(object type)
    enum: UR_FREE_LISTS
    int ur_visit_owned(PyObject *object, visitproc visit, void *arg) noexcept
    int ur_add_fast_method(object type, const char *name, void *function, const char *doc) except -1


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
    int MSG_DONTWAIT, MSG_WAITALL, MSG_NOSIGNAL, MSG_TRUNC, MSG_PEEK
    int SOCK_NONBLOCK, SOCK_CLOEXEC, SOL_SOCKET, SO_ERROR, SHUT_WR, SHUT_RDWR
    int AF_INET, AF_INET6, AF_UNIX
    ssize_t c_recv "recv"(int fd, void *buf, size_t len, int flags)
    ssize_t c_send "send"(int fd, const void *buf, size_t len, int flags)
    ssize_t c_recvmsg "recvmsg"(int fd, msghdr *msg, int flags)
    ssize_t c_sendmsg "sendmsg"(int fd, const msghdr *msg, int flags)
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
