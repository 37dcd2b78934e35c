/* The system calls of files: each io_uring file operation as a plain blocking call, for the worker threads of a loop
 * without a ring, and attempts that cannot block, for the loop's own thread. Each returns what a completion would hold:
 * the result, or -errno. Holds no state. */
#ifndef URINGLOOP_FILE_CALLS_H
#define URINGLOOP_FILE_CALLS_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "kernel/abi.h"
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <unistd.h>

#ifndef __NR_openat2
#define __NR_openat2 437
#endif
#ifndef RWF_NOWAIT
#define RWF_NOWAIT 8
#endif
#define UR_RESOLVE_CACHED 0x20
#ifndef STATX_MNT_ID
#define STATX_MNT_ID 0x1000U
#endif

struct ur_open_how { uint64_t flags, mode, resolve; };

static inline int64_t ur_answer(int64_t result) { return result < 0 ? -errno : result; }

static inline int ur_openat2(int dir, const char *path, const struct ur_open_how *how) {
    long fd = syscall(__NR_openat2, dir, path, how, sizeof(*how));
    if (fd < 0 && errno == ENOSYS && how->resolve == 0)
        fd = openat(dir, path, (int)how->flags, (mode_t)how->mode);
    return (int)ur_answer(fd);
}

static inline int ur_poll_now(int fd, int events) {
    struct pollfd watched = {fd, (short)events, 0};
    int count = poll(&watched, 1, 0);
    return count < 0 ? -errno : count ? watched.revents : -EAGAIN;
}

/* An offset of -1 means the file's own position, as in the ring. */
static inline int64_t ur_pread(int fd, void *data, size_t length, int64_t offset) {
    return ur_answer(offset == -1 ? read(fd, data, length) : pread(fd, data, length, offset));
}

static inline int64_t ur_pwrite(int fd, const void *data, size_t length, int64_t offset) {
    return ur_answer(offset == -1 ? write(fd, data, length) : pwrite(fd, data, length, offset));
}

/* -EAGAIN if the page cache doesn't hold the data, -EOPNOTSUPP if the filesystem cannot tell. */
static inline int64_t ur_read_now(int fd, void *data, size_t length, int64_t offset) {
    struct iovec part = {data, length};
    return ur_answer(preadv2(fd, &part, 1, offset, RWF_NOWAIT));
}

static inline int64_t ur_write_now(int fd, const void *data, size_t length, int64_t offset) {
    struct iovec part = {(void *)data, length};
    return ur_answer(pwritev2(fd, &part, 1, offset, RWF_NOWAIT));
}

/* The attributes that the kernel knows without asking a server or a disk. */
static inline int ur_stat_now(int fd, struct statx *found) {
    return (int)ur_answer(statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_BASIC_STATS, found));
}

/* Resolves a path only by names that the kernel has in memory. O_PATH runs none of the filesystem's code. */
static inline int ur_locate_now(int dir, const char *path, uint64_t flags, struct statx *found) {
    struct ur_open_how how = {O_PATH | O_CLOEXEC | flags, 0, UR_RESOLVE_CACHED};
    int ret, fd = ur_openat2(dir, path, &how);
    if (fd < 0) return fd;
    ret = ur_stat_now(fd, found);
    if (ret < 0) { close(fd); return ret; }
    return fd;
}

/* O_NONBLOCK, because the name may have become another file's since it was checked: opening a FIFO, say, must not wait
 * for its other end. The flag is removed afterwards, because the ring would fail reads and writes that have to wait. */
static inline int ur_open_now(int dir, const char *path, uint64_t flags) {
    struct ur_open_how how = {flags | O_NONBLOCK, 0, UR_RESOLVE_CACHED};
    int fd = ur_openat2(dir, path, &how);
    if (fd >= 0) fcntl(fd, F_SETFL, (int)flags & (O_APPEND | O_DIRECT | O_NOATIME));
    return fd;
}

/* Does one operation of the ring, given by its submission entry, as a plain blocking call. */
static inline int64_t ur_file_block(const struct io_uring_sqe *sqe) {
    int fd = sqe->fd;
    const char *path = (const char *)(uintptr_t)sqe->addr;
    const char *other = (const char *)(uintptr_t)sqe->addr2;
    switch (sqe->opcode) {
    case IORING_OP_READ: return ur_pread(fd, (void *)(uintptr_t)sqe->addr, sqe->len, (int64_t)sqe->off);
    case IORING_OP_WRITE: return ur_pwrite(fd, path, sqe->len, (int64_t)sqe->off);
    case IORING_OP_FSYNC: return ur_answer(sqe->fsync_flags & IORING_FSYNC_DATASYNC ? fdatasync(fd) : fsync(fd));
    case IORING_OP_POLL_ADD: { struct pollfd watched = {fd, (short)sqe->poll32_events, 0};
        int count = poll(&watched, 1, -1); return count < 0 ? -errno : watched.revents; }
    case IORING_OP_FALLOCATE: return ur_answer(fallocate(fd, (int)sqe->len, (off_t)sqe->off, (off_t)sqe->addr));
    case IORING_OP_FADVISE: return -posix_fadvise(fd, (off_t)sqe->off, (off_t)sqe->len, (int)sqe->fadvise_advice);
    case IORING_OP_FTRUNCATE: return ur_answer(ftruncate(fd, (off_t)sqe->off));
    case IORING_OP_CLOSE: return ur_answer(close(fd));
    case IORING_OP_OPENAT2: return ur_openat2(fd, path, (const struct ur_open_how *)other);
    case IORING_OP_STATX: return ur_answer(statx(fd, path, (int)sqe->statx_flags, sqe->len, (struct statx *)other));
    case IORING_OP_MKDIRAT: return ur_answer(mkdirat(fd, path, sqe->len));
    case IORING_OP_UNLINKAT: return ur_answer(unlinkat(fd, path, (int)sqe->unlink_flags));
    case IORING_OP_RENAMEAT: return ur_answer(syscall(SYS_renameat2, fd, path, (int)sqe->len, other, sqe->rename_flags));
    case IORING_OP_LINKAT: return ur_answer(linkat(fd, path, (int)sqe->len, other, (int)sqe->hardlink_flags));
    case IORING_OP_SYMLINKAT: return ur_answer(symlinkat(path, fd, other));
    case IORING_OP_SPLICE: {
        off_t in = (off_t)sqe->splice_off_in, out = (off_t)sqe->off;
        return ur_answer(splice(sqe->splice_fd_in, in == -1 ? NULL : &in, fd, out == -1 ? NULL : &out, sqe->len, sqe->splice_flags));
    }
    }
    return -EINVAL;
}

#endif
