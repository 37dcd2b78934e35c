from libc.stdint cimport int64_t, uint32_t, uint64_t

from uringloop._core.awaitables.future_op cimport FutureOp
from uringloop._core.kernel.abi cimport io_uring_sqe
from uringloop._core.loop.loop cimport Loop

cdef extern from "kernel/file_calls.h" nogil:
    struct ur_open_how:
        uint64_t flags, mode, resolve
    struct statx_timestamp:
        int64_t tv_sec
        uint32_t tv_nsec
    struct statx:
        uint32_t stx_mask, stx_blksize, stx_nlink, stx_uid, stx_gid
        unsigned short stx_mode
        uint64_t stx_ino, stx_size, stx_blocks, stx_attributes
        statx_timestamp stx_atime, stx_btime, stx_ctime, stx_mtime
        uint32_t stx_rdev_major, stx_rdev_minor, stx_dev_major, stx_dev_minor
    int STATX_BASIC_STATS
    int64_t ur_pread(int fd, void *data, size_t length, int64_t offset)
    int64_t ur_pwrite(int fd, const void *data, size_t length, int64_t offset)
    int64_t ur_read_now(int fd, void *data, size_t length, int64_t offset)
    int64_t ur_write_now(int fd, const void *data, size_t length, int64_t offset)
    int ur_poll_now(int fd, int events)
    int ur_stat_now(int fd, statx *found)
    int ur_locate_now(int dir, const char *path, uint64_t flags, statx *found)
    int ur_open_now(int dir, const char *path, uint64_t flags)
    int64_t ur_file_block(const io_uring_sqe *sqe)


cdef class OpOwner:
    # Learns of an operation's end even if no task waits for that any more.
    cdef int op_ended(self, FileOp op) except -1


cdef class FileOp(FutureOp):
    cdef io_uring_sqe entry       # the submission entry, except for user_data
    cdef ur_open_how how
    cdef object memory_owner      # the object that the entry's addresses point into: bytes, or a memoryview
    cdef object other_memory_owner
    cdef object names             # (path,) or (path, other path): raise OSError with them; None: return the result
    cdef OpOwner owner
    cdef bint fixed               # `memory_owner` is a FixedBuffer: if the ring has pinned it, the entry uses its number
    cdef bint endless             # its end depends on another process or task, as for a read of a pipe
    cdef bint counted             # the engine's `in_workers` counts it
    cdef bint uncancellable       # it must happen even if its task is cancelled, so it is never cancelled itself
    cdef int duplicate            # of a folder's descriptor, which the program may close; closed with this object
    cdef int other_duplicate


cdef FileOp file_op(Loop loop, int opcode, int fd, uint64_t off, uint64_t addr, uint32_t length, uint32_t flags)
cdef FileOp read_op(Loop loop, int fd, object memory_owner, char *data, size_t length, int64_t offset)
cdef FileOp write_op(Loop loop, int fd, object memory_owner, const char *data, size_t length, int64_t offset)
