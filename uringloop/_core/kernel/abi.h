/* The kernel's io_uring ABI: structures, constants and system calls. It is our own copy, so that
 * the core builds the same way with any libc and any version of <linux/io_uring.h>, and runs on
 * any kernel: probe.pyx asks at run time what the kernel offers, and no header decides it. Names
 * are the kernel's. The static assertions below check the layouts. */
#ifndef URINGLOOP_ABI_H
#define URINGLOOP_ABI_H

#include <stdint.h>
#include <stddef.h>
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#ifndef URINGLOOP_DEBUG
#define URINGLOOP_DEBUG 0
#endif

struct io_uring_sqe {
    uint8_t opcode;
    uint8_t flags;
    uint16_t ioprio;
    int32_t fd;
    union { uint64_t off; uint64_t addr2; struct { uint32_t cmd_op; uint32_t __pad1; }; };
    union { uint64_t addr; uint64_t splice_off_in; struct { uint32_t level; uint32_t optname; }; };
    uint32_t len;
    union {
        uint32_t rw_flags; uint32_t fsync_flags; uint32_t poll32_events; uint32_t msg_flags;
        uint32_t timeout_flags; uint32_t accept_flags; uint32_t cancel_flags; uint32_t open_flags;
        uint32_t statx_flags; uint32_t fadvise_advice; uint32_t splice_flags; uint32_t rename_flags;
        uint32_t unlink_flags; uint32_t hardlink_flags; uint32_t waitid_flags; uint32_t futex_flags;
    };
    uint64_t user_data;
    union { uint16_t buf_index; uint16_t buf_group; };
    uint16_t personality;
    union { int32_t splice_fd_in; uint32_t file_index; uint32_t optlen; struct { uint16_t addr_len; uint16_t __pad3; }; };
    union { struct { uint64_t addr3; uint64_t __pad2; }; uint64_t optval; };
};

struct io_uring_cqe { uint64_t user_data; int32_t res; uint32_t flags; };

struct io_sqring_offsets {
    uint32_t head, tail, ring_mask, ring_entries, flags, dropped, array, resv1;
    uint64_t user_addr;
};
struct io_cqring_offsets {
    uint32_t head, tail, ring_mask, ring_entries, overflow, cqes, flags, resv1;
    uint64_t user_addr;
};
struct io_uring_params {
    uint32_t sq_entries, cq_entries, flags, sq_thread_cpu, sq_thread_idle, features, wq_fd, resv[3];
    struct io_sqring_offsets sq_off;
    struct io_cqring_offsets cq_off;
};
struct io_uring_timespec { int64_t tv_sec; long long tv_nsec; };
struct io_uring_getevents_arg { uint64_t sigmask; uint32_t sigmask_sz; uint32_t min_wait_usec; uint64_t ts; };
struct io_uring_rsrc_update { uint32_t offset; uint32_t resv; uint64_t data; };
struct io_uring_rsrc_register { uint32_t nr; uint32_t flags; uint64_t resv2; uint64_t data; uint64_t tags; };
struct io_uring_rsrc_update2 { uint32_t offset; uint32_t resv; uint64_t data; uint64_t tags; uint32_t nr; uint32_t resv2; };
struct io_uring_probe_op { uint8_t op; uint8_t resv; uint16_t flags; uint32_t resv2; };
struct io_uring_probe { uint8_t last_op; uint8_t ops_len; uint16_t resv; uint32_t resv2[3]; struct io_uring_probe_op ops[256]; };
struct io_uring_restriction { uint16_t opcode; uint8_t allowed; uint8_t resv; uint32_t resv2[3]; };
struct io_uring_buf { uint64_t addr; uint32_t len; uint16_t bid; uint16_t resv; };
struct io_uring_buf_reg { uint64_t ring_addr; uint32_t ring_entries; uint16_t bgid; uint16_t flags; uint64_t resv[3]; };

_Static_assert(sizeof(struct io_uring_sqe) == 64, "io_uring_sqe");
_Static_assert(offsetof(struct io_uring_sqe, user_data) == 32, "io_uring_sqe.user_data");
_Static_assert(offsetof(struct io_uring_sqe, splice_fd_in) == 44, "io_uring_sqe.splice_fd_in");
_Static_assert(sizeof(struct io_uring_cqe) == 16, "io_uring_cqe");
_Static_assert(sizeof(struct io_uring_params) == 120, "io_uring_params");
_Static_assert(sizeof(struct io_uring_getevents_arg) == 24, "io_uring_getevents_arg");
_Static_assert(sizeof(struct io_uring_rsrc_register) == 32, "io_uring_rsrc_register");
_Static_assert(sizeof(struct io_uring_rsrc_update2) == 32, "io_uring_rsrc_update2");
_Static_assert(sizeof(struct io_uring_restriction) == 16, "io_uring_restriction");
_Static_assert(sizeof(struct io_uring_buf) == 16, "io_uring_buf");
_Static_assert(sizeof(struct io_uring_buf_reg) == 40, "io_uring_buf_reg");

#define IORING_OFF_SQ_RING 0ULL
#define IORING_OFF_CQ_RING 0x8000000ULL
#define IORING_OFF_SQES 0x10000000ULL

#define IORING_SETUP_CQSIZE (1U << 3)
#define IORING_SETUP_CLAMP (1U << 4)
#define IORING_SETUP_R_DISABLED (1U << 6)
#define IORING_SETUP_SUBMIT_ALL (1U << 7)
#define IORING_SETUP_COOP_TASKRUN (1U << 8)
#define IORING_SETUP_TASKRUN_FLAG (1U << 9)
#define IORING_SETUP_SINGLE_ISSUER (1U << 12)
#define IORING_SETUP_DEFER_TASKRUN (1U << 13)
#define IORING_SETUP_NO_SQARRAY (1U << 16)

#define IORING_FEAT_SINGLE_MMAP (1U << 0)
#define IORING_FEAT_NODROP (1U << 1)
#define IORING_FEAT_SUBMIT_STABLE (1U << 2)
#define IORING_FEAT_FAST_POLL (1U << 5)
#define IORING_FEAT_EXT_ARG (1U << 8)
#define IORING_FEAT_CQE_SKIP (1U << 11)
#define IORING_FEAT_RECVSEND_BUNDLE (1U << 14)
#define IORING_FEAT_MIN_TIMEOUT (1U << 15)
#define IORING_FEAT_NO_IOWAIT (1U << 17)

#define IORING_SQ_CQ_OVERFLOW (1U << 1)
#define IORING_SQ_TASKRUN (1U << 2)

#define IORING_ENTER_GETEVENTS (1U << 0)
#define IORING_ENTER_EXT_ARG (1U << 3)
#define IORING_ENTER_REGISTERED_RING (1U << 4)
#define IORING_ENTER_ABS_TIMER (1U << 5)
#define IORING_ENTER_NO_IOWAIT (1U << 7)

#define IORING_REGISTER_EVENTFD 4
#define IORING_UNREGISTER_EVENTFD 5
#define IORING_REGISTER_PROBE 8
#define IORING_REGISTER_RESTRICTIONS 11
#define IORING_REGISTER_ENABLE_RINGS 12
#define IORING_REGISTER_BUFFERS2 15
#define IORING_REGISTER_BUFFERS_UPDATE 16
#define IORING_REGISTER_RING_FDS 20
#define IORING_UNREGISTER_RING_FDS 21
#define IORING_REGISTER_PBUF_RING 22
#define IORING_UNREGISTER_PBUF_RING 23
#define IORING_RESTRICTION_REGISTER_OP 0
#define IORING_RESTRICTION_SQE_OP 1
#define IORING_RESTRICTION_SQE_FLAGS_ALLOWED 2
#define IORING_RSRC_REGISTER_SPARSE (1U << 0)
#define IO_URING_OP_SUPPORTED (1U << 0)

#define IOSQE_FIXED_FILE (1U << 0)
#define IOSQE_IO_DRAIN (1U << 1)
#define IOSQE_IO_LINK (1U << 2)
#define IOSQE_IO_HARDLINK (1U << 3)
#define IOSQE_ASYNC (1U << 4)
#define IOSQE_BUFFER_SELECT (1U << 5)
#define IOSQE_CQE_SKIP_SUCCESS (1U << 6)

#define IORING_CQE_F_BUFFER (1U << 0)
#define IORING_CQE_F_MORE (1U << 1)
#define IORING_CQE_F_SOCK_NONEMPTY (1U << 2)
#define IORING_CQE_F_NOTIF (1U << 3)
#define IORING_CQE_BUFFER_SHIFT 16

#define IORING_RECVSEND_POLL_FIRST (1U << 0)
#define IORING_RECV_MULTISHOT (1U << 1)
#define IORING_RECVSEND_BUNDLE (1U << 4)
#define IORING_ACCEPT_MULTISHOT (1U << 0)
#define IORING_POLL_ADD_MULTI (1U << 0)
#define IORING_ASYNC_CANCEL_ALL (1U << 0)
#define IORING_FSYNC_DATASYNC (1U << 0)

enum {
    IORING_OP_NOP = 0, IORING_OP_READV, IORING_OP_WRITEV, IORING_OP_FSYNC, IORING_OP_READ_FIXED,
    IORING_OP_WRITE_FIXED, IORING_OP_POLL_ADD, IORING_OP_POLL_REMOVE, IORING_OP_SYNC_FILE_RANGE,
    IORING_OP_SENDMSG, IORING_OP_RECVMSG, IORING_OP_TIMEOUT, IORING_OP_TIMEOUT_REMOVE,
    IORING_OP_ACCEPT, IORING_OP_ASYNC_CANCEL, IORING_OP_LINK_TIMEOUT, IORING_OP_CONNECT,
    IORING_OP_FALLOCATE, IORING_OP_OPENAT, IORING_OP_CLOSE, IORING_OP_FILES_UPDATE, IORING_OP_STATX,
    IORING_OP_READ, IORING_OP_WRITE, IORING_OP_FADVISE, IORING_OP_MADVISE, IORING_OP_SEND,
    IORING_OP_RECV, IORING_OP_OPENAT2, IORING_OP_EPOLL_CTL, IORING_OP_SPLICE,
    IORING_OP_PROVIDE_BUFFERS, IORING_OP_REMOVE_BUFFERS, IORING_OP_TEE, IORING_OP_SHUTDOWN,
    IORING_OP_RENAMEAT, IORING_OP_UNLINKAT, IORING_OP_MKDIRAT, IORING_OP_SYMLINKAT,
    IORING_OP_LINKAT, IORING_OP_MSG_RING, IORING_OP_FSETXATTR, IORING_OP_SETXATTR,
    IORING_OP_FGETXATTR, IORING_OP_GETXATTR, IORING_OP_SOCKET, IORING_OP_URING_CMD,
    IORING_OP_SEND_ZC, IORING_OP_SENDMSG_ZC, IORING_OP_READ_MULTISHOT, IORING_OP_WAITID,
    IORING_OP_FUTEX_WAIT, IORING_OP_FUTEX_WAKE, IORING_OP_FUTEX_WAITV,
    IORING_OP_FIXED_FD_INSTALL, IORING_OP_FTRUNCATE, IORING_OP_BIND, IORING_OP_LISTEN,
    IORING_OP_RECV_ZC, IORING_OP_EPOLL_WAIT,
};

/* The same numbers on every architecture that has a unified system call table. */
#ifndef __NR_io_uring_setup
#define __NR_io_uring_setup 425
#define __NR_io_uring_enter 426
#define __NR_io_uring_register 427
#endif

/* Each returns what the kernel returns: the result, or -errno. */
static inline int ur_io_uring_setup(unsigned entries, struct io_uring_params *params) {
    long ret = syscall(__NR_io_uring_setup, entries, params);
    return ret < 0 ? -errno : (int)ret;
}
static inline int ur_io_uring_enter(int fd, unsigned to_submit, unsigned min_complete, unsigned flags,
                                    const void *arg, size_t size) {
    long ret = syscall(__NR_io_uring_enter, fd, to_submit, min_complete, flags, arg, size);
    return ret < 0 ? -errno : (int)ret;
}
static inline int ur_io_uring_register(int fd, unsigned opcode, const void *arg, unsigned count) {
    long ret = syscall(__NR_io_uring_register, fd, opcode, arg, count);
    return ret < 0 ? -errno : (int)ret;
}

static inline int64_t ur_now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}
/* The same clock at the kernel's last tick: a few milliseconds behind, but cheaper to read. */
static inline int64_t ur_coarse_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* The indexes of the rings are shared with the kernel: each side stores with release, and loads with acquire. */
static inline unsigned ur_load_acquire(const unsigned *p) { return __atomic_load_n(p, __ATOMIC_ACQUIRE); }
static inline unsigned ur_load_relaxed(const unsigned *p) { return __atomic_load_n(p, __ATOMIC_RELAXED); }
static inline void ur_store_release(unsigned *p, unsigned v) { __atomic_store_n(p, v, __ATOMIC_RELEASE); }
static inline uint16_t ur_load16_relaxed(const uint16_t *p) { return __atomic_load_n(p, __ATOMIC_RELAXED); }
static inline void ur_store16_release(uint16_t *p, uint16_t v) { __atomic_store_n(p, v, __ATOMIC_RELEASE); }
static inline void ur_cpu_relax(void) {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

#endif
