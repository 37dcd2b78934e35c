# Cython declarations of abi.h: the kernel's io_uring ABI, with the kernel's names, and the atomics of the rings.
from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t


cdef extern from "kernel/abi.h" nogil:
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

    struct io_uring_restriction:
        uint16_t opcode
        uint8_t allowed

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
    uint32_t IORING_REGISTER_EVENTFD, IORING_UNREGISTER_EVENTFD, IORING_REGISTER_RESTRICTIONS
    uint32_t IORING_RESTRICTION_REGISTER_OP, IORING_RESTRICTION_SQE_OP, IORING_RESTRICTION_SQE_FLAGS_ALLOWED
    uint32_t IO_URING_OP_SUPPORTED
    uint32_t IOSQE_IO_DRAIN, IOSQE_IO_HARDLINK, IOSQE_IO_LINK, IOSQE_ASYNC, IOSQE_BUFFER_SELECT, IOSQE_CQE_SKIP_SUCCESS
    uint32_t IORING_CQE_F_BUFFER, IORING_CQE_F_MORE, IORING_CQE_F_SOCK_NONEMPTY, IORING_CQE_BUFFER_SHIFT
    uint32_t IORING_RECVSEND_POLL_FIRST, IORING_RECV_MULTISHOT, IORING_ACCEPT_MULTISHOT
    uint32_t IORING_RECVSEND_BUNDLE, IORING_POLL_ADD_MULTI, IORING_FSYNC_DATASYNC
    uint8_t IORING_OP_NOP, IORING_OP_FSYNC, IORING_OP_POLL_ADD, IORING_OP_SENDMSG, IORING_OP_RECVMSG
    uint8_t IORING_OP_ACCEPT, IORING_OP_ASYNC_CANCEL, IORING_OP_CONNECT, IORING_OP_FALLOCATE, IORING_OP_OPENAT
    uint8_t IORING_OP_CLOSE, IORING_OP_STATX, IORING_OP_READ, IORING_OP_WRITE, IORING_OP_FADVISE, IORING_OP_SEND
    uint8_t IORING_OP_RECV, IORING_OP_OPENAT2, IORING_OP_SPLICE, IORING_OP_SHUTDOWN, IORING_OP_RENAMEAT
    uint8_t IORING_OP_UNLINKAT, IORING_OP_MKDIRAT, IORING_OP_SYMLINKAT, IORING_OP_LINKAT, IORING_OP_SEND_ZC
    uint8_t IORING_OP_READ_MULTISHOT, IORING_OP_WAITID, IORING_OP_FTRUNCATE, IORING_OP_EPOLL_WAIT, IORING_OP_READV, IORING_OP_WRITEV
    uint8_t IORING_OP_READ_FIXED, IORING_OP_WRITE_FIXED, IORING_OP_LINK_TIMEOUT

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
