# FileOp: one operation on a file or a path, as an io_uring submission entry. Owns the entry and every object that the
# kernel reads or writes for it, until its last completion, even if no task waits for it any more. Without a ring, a
# worker thread makes the same call, blocking. Knows nothing of buffering, positions or encodings.
import os

from libc.stdint cimport int64_t, uint32_t, uint64_t, uintptr_t
from libc.string cimport memset

from uringloop._core.awaitables.coroutine cimport PHASE_OVER, PHASE_WAITING
from uringloop._core.awaitables.future_op cimport FutureOp
from uringloop._core.engine.fixed_buffer cimport FixedBuffer, FixedMemory
from uringloop._core.engine.op cimport NEED_THREAD, OP_IDLE
from uringloop._core.kernel.abi cimport (
    IORING_FSYNC_DATASYNC, IORING_OP_CLOSE, IORING_OP_FADVISE, IORING_OP_FALLOCATE, IORING_OP_FSYNC,
    IORING_OP_FTRUNCATE, IORING_OP_LINKAT, IORING_OP_MKDIRAT, IORING_OP_OPENAT2, IORING_OP_READ,
    IORING_OP_READ_FIXED, IORING_OP_RENAMEAT, IORING_OP_SPLICE, IORING_OP_STATX, IORING_OP_SYMLINKAT,
    IORING_OP_UNLINKAT, IORING_OP_WRITE, IORING_OP_WRITE_FIXED, IOSQE_ASYNC, io_uring_sqe,
)
from uringloop._core.kernel.libc cimport ECANCELED, EINTR, EIO, c_close
from uringloop._core.kernel.probe cimport kernel_features
from uringloop._core.loop.loop cimport Loop
from uringloop._core.lifetime.guard cimport ur_abstract, ur_only_core_makes

cdef extern from "<fcntl.h>" nogil:
    uint64_t O_NOFOLLOW
    int F_DUPFD_CLOEXEC
    int c_fcntl "fcntl"(int fd, int command, int argument)


cdef class OpOwner:
    cdef int op_ended(self, FileOp op) except -1:
        """The operation has completed, with `res`, after its coroutine had been cancelled or closed."""
        return 0


cdef class Ending(OpOwner):
    cdef object future

    cdef int op_ended(self, FileOp op) except -1:
        if not self.future.done():
            self.future.set_result(None)
        return 0


cdef class FileOp(FutureOp):
    def __cinit__(self):
        self.duplicate = self.other_duplicate = -1

    def __dealloc__(self):
        if self.entry.opcode == IORING_OP_OPENAT2 and self.done and self.res >= 0:
            c_close(self.res)  # the file was opened, but no task took the descriptor
        elif self.entry.opcode == IORING_OP_CLOSE and not self.done:
            c_close(self.entry.fd)  # the close was never submitted
        if self.duplicate >= 0:
            c_close(self.duplicate)
        if self.other_duplicate >= 0:
            c_close(self.other_duplicate)

    cdef object again(self):
        cdef int res = self.res
        if res < 0 and self.names is not None:
            raise OSError(-res, os.strerror(-res), *self._filenames())
        self.res = -ECANCELED  # the caller owns the result now
        return res

    def _filenames(self):
        names = [name if isinstance(name, int) else os.fspath(name) for name in self.names]
        if len(names) == 2:
            names.insert(1, None)  # OSError takes Windows' own error number between the two names
        return names

    cdef int left(self) except -1:
        cdef OpOwner owner = self.owner
        self.owner = None  # called once, although both `stop` and `run` may call `left`
        if owner is not None:
            owner.op_ended(self)
        return 0

    cdef int stop(self) except -1:
        if self.uncancellable and self.phase == PHASE_WAITING:
            self.phase = PHASE_OVER
            self.future = None
            return 0
        return FutureOp.stop(self)

    cdef void fill(self, io_uring_sqe *sqe) noexcept:
        cdef FixedMemory memory
        cdef int place
        sqe[0] = self.entry
        if not self.counted and not self.endless:
            self.counted = True
            self.loop.engine.in_workers += 1
        if self.fixed:
            # Only now, because the loop may have moved to another ring since the operation was made.
            memory = (<FixedBuffer> self.memory_owner).memory
            place = memory.place_in(self.loop.engine)
            if place >= 0:
                sqe.opcode = IORING_OP_READ_FIXED if self.entry.opcode == IORING_OP_READ else IORING_OP_WRITE_FIXED
                sqe.buf_index = place
                memory.transfers += 1

    cdef object kernel_memory(self):
        if self.duplicate >= 0 or self.other_duplicate >= 0:
            return self
        return self.memory_owner, self.other_memory_owner  # the kernel read all else when it took the entry

    cdef int block(self) noexcept nogil:
        cdef int64_t res = -EINTR
        while res == -EINTR:
            res = ur_file_block(&self.entry)
        return <int> res

    cdef void record_completion(self, int res, uint32_t flags) noexcept:
        if res > 0 and <uint32_t> res > self.entry.len and self.entry.opcode in (IORING_OP_READ, IORING_OP_WRITE, IORING_OP_SPLICE):
            res = -EIO  # more than the memory holds
        FutureOp.record_completion(self, res, flags)
        if self.counted:
            self.counted = False
            self.loop.engine.in_workers -= 1
        # A close that was cancelled is done here, in the walk, because `run` is not called when a loop closes, and no
        # descriptor may be lost. But if the ring is gone, it may have closed the descriptor, and another file may have the
        # number by now.
        if self.entry.opcode == IORING_OP_CLOSE and res == -ECANCELED and not self.result_unknown:
            c_close(self.entry.fd)

    cdef str describe(self):
        return f"FileOp {_NAMES.get(self.entry.opcode, self.entry.opcode)}"


_NAMES = {
    IORING_OP_READ: "read", IORING_OP_WRITE: "write", IORING_OP_FSYNC: "fsync", IORING_OP_CLOSE: "close",
    IORING_OP_OPENAT2: "openat2", IORING_OP_STATX: "statx", IORING_OP_MKDIRAT: "mkdirat",
    IORING_OP_UNLINKAT: "unlinkat", IORING_OP_RENAMEAT: "renameat", IORING_OP_LINKAT: "linkat",
    IORING_OP_SYMLINKAT: "symlinkat", IORING_OP_FALLOCATE: "fallocate", IORING_OP_FADVISE: "fadvise",
    IORING_OP_FTRUNCATE: "ftruncate", IORING_OP_SPLICE: "splice",
}


cdef FileOp file_op(Loop loop, int opcode, int fd, uint64_t off, uint64_t addr, uint32_t length, uint32_t flags):
    cdef FileOp op = FileOp.__new__(FileOp)
    op.loop = loop
    op.fd = fd
    op.need = NEED_THREAD
    memset(&op.entry, 0, sizeof(op.entry))
    op.entry.opcode = opcode
    op.entry.fd = fd
    op.entry.off = off
    op.entry.addr = addr
    op.entry.len = length
    op.entry.rw_flags = flags
    return op


cdef FileOp read_op(Loop loop, int fd, object memory_owner, char *data, size_t length, int64_t offset):
    """Read into memory that `memory_owner` owns. Offset -1 reads at the file's own position."""
    cdef FileOp op = file_op(loop, IORING_OP_READ, fd, <uint64_t> offset, <uint64_t> <uintptr_t> data,
                             <uint32_t> length, 0)
    op.memory_owner = memory_owner
    op.fixed = isinstance(memory_owner, FixedBuffer)
    return op


cdef FileOp write_op(Loop loop, int fd, object memory_owner, const char *data, size_t length, int64_t offset):
    cdef FileOp op = file_op(loop, IORING_OP_WRITE, fd, <uint64_t> offset, <uint64_t> <uintptr_t> data,
                             <uint32_t> length, 0)
    op.memory_owner = memory_owner
    op.fixed = isinstance(memory_owner, FixedBuffer)
    return op


def when_ended(FileOp op):
    """A future that is done once the kernel has ended the operation, even if no task awaits that any more. None: it is not
    in the kernel."""
    cdef Ending owner
    if op.state == OP_IDLE:
        return None
    owner = Ending.__new__(Ending)
    owner.future = op.loop.create_future()
    op.owner = owner
    return owner.future


def uncancelled(FileOp op):
    """Return the same operation, but if its task is cancelled, the kernel still does it."""
    op.uncancellable = True
    return op


# Operations by name, for Python. Each is a coroutine that returns the kernel's result. With `names`, the program's names
# of its paths, it raises the OSError that the os module would; without, it returns -errno.

cdef inline uint64_t _address(bytes path) noexcept:
    return <uint64_t> <uintptr_t> <const char *> path


cdef inline int _duplicate(int dir) noexcept:
    """A duplicate of a folder's descriptor, or -1. A cancelled operation may still begin after the program has closed the
    folder, when another file may have the number. Not for files: each close of a file's descriptor may make a network
    filesystem call its server."""
    return c_fcntl(dir, F_DUPFD_CLOEXEC, 0) if dir >= 0 else -1


cdef FileOp _path_op(Loop loop, int opcode, int dir, bytes path, uint64_t off, uint32_t length, uint32_t flags, names):
    cdef int duplicate = _duplicate(dir) if path else -1
    cdef FileOp op = file_op(loop, opcode, duplicate if duplicate >= 0 else dir, off, _address(path), length, flags)
    op.duplicate = duplicate
    op.memory_owner = path
    op.names = names
    return op


cdef FileOp _two_path_op(Loop loop, int opcode, int dir, bytes path, int other_dir, bytes other, uint32_t flags, names):
    cdef int duplicate = _duplicate(other_dir)
    cdef FileOp op = _path_op(loop, opcode, dir, path, _address(other),
                              <uint32_t> (duplicate if duplicate >= 0 else other_dir), flags, names)
    op.other_duplicate = duplicate
    op.other_memory_owner = other
    return op


def openat2(Loop loop, int dir, bytes path, uint64_t flags, uint64_t mode, uint64_t resolve, bint remote, names):
    """`remote`: the filesystem may hang, so the kernel must not even try the open in the loop's own thread."""
    cdef FileOp op = _path_op(loop, IORING_OP_OPENAT2, dir, path, 0, sizeof(ur_open_how), 0, names)
    op.how.flags = flags
    op.how.mode = mode
    op.how.resolve = resolve
    op.entry.off = <uint64_t> <uintptr_t> &op.how
    if remote:
        op.entry.flags = IOSQE_ASYNC
    return op


def close(Loop loop, int fd):
    cdef FileOp op = file_op(loop, IORING_OP_CLOSE, fd, 0, 0, 0, 0)
    op.uncancellable = True
    return op


def statx_into(Loop loop, int dir, bytes path, uint32_t flags, bytes found, names):
    """`found` is a `stat_buffer()`, read with `stat_result`."""
    cdef FileOp op = _path_op(loop, IORING_OP_STATX, dir, path, _address(found), STATX_BASIC_STATS, flags, names)
    op.other_memory_owner = found
    return op


def mkdirat(Loop loop, int dir, bytes path, uint32_t mode, names):
    return _path_op(loop, IORING_OP_MKDIRAT, dir, path, 0, mode, 0, names)


def unlinkat(Loop loop, int dir, bytes path, uint32_t flags, names):
    return _path_op(loop, IORING_OP_UNLINKAT, dir, path, 0, 0, flags, names)


def renameat(Loop loop, int dir, bytes path, int other_dir, bytes other, uint32_t flags, names):
    return _two_path_op(loop, IORING_OP_RENAMEAT, dir, path, other_dir, other, flags, names)


def linkat(Loop loop, int dir, bytes path, int other_dir, bytes other, uint32_t flags, names):
    return _two_path_op(loop, IORING_OP_LINKAT, dir, path, other_dir, other, flags, names)


def symlinkat(Loop loop, bytes target, int dir, bytes path, names):
    cdef FileOp op = _path_op(loop, IORING_OP_SYMLINKAT, dir, target, _address(path), 0, 0, names)
    op.other_memory_owner = path
    return op


def fsync(Loop loop, int fd, bint only_data, names):
    cdef FileOp op = file_op(loop, IORING_OP_FSYNC, fd, 0, 0, 0, IORING_FSYNC_DATASYNC if only_data else 0)
    op.names = names
    return op


def fallocate(Loop loop, int fd, int mode, int64_t offset, int64_t length, names):
    cdef FileOp op = file_op(loop, IORING_OP_FALLOCATE, fd, <uint64_t> offset, <uint64_t> length, <uint32_t> mode, 0)
    op.names = names
    return op


def fadvise(Loop loop, int fd, int64_t offset, uint32_t length, int advice, names):
    cdef FileOp op = file_op(loop, IORING_OP_FADVISE, fd, <uint64_t> offset, 0, length, <uint32_t> advice)
    op.names = names
    return op


def ftruncate(Loop loop, int fd, int64_t length, names):
    """Call this only if `offers_ftruncate()`."""
    cdef FileOp op = file_op(loop, IORING_OP_FTRUNCATE, fd, <uint64_t> length, 0, 0, 0)
    op.names = names
    return op


def offers_ftruncate(Loop loop):
    """Whether the engine can do ftruncate: io_uring since Linux 6.9; an engine without a ring makes plain calls anyway."""
    return loop._engine_name != "uring" or kernel_features().ftruncate


def splice(Loop loop, int source, int64_t source_offset, int target, int64_t target_offset, uint32_t length,
           uint32_t flags, names):
    cdef FileOp op = file_op(loop, IORING_OP_SPLICE, target, <uint64_t> target_offset, <uint64_t> source_offset,
                             length, flags)
    op.entry.splice_fd_in = source
    op.names = names
    return op


def stat_buffer():
    return bytes(sizeof(statx))


def stat_result(bytes found):
    """Convert the result of statx_into to what os.stat returns."""
    return make_stat(<statx *> <char *> found)


cdef object make_stat(statx *s):
    cdef tuple seconds = (s.stx_atime.tv_sec, s.stx_mtime.tv_sec, s.stx_ctime.tv_sec)
    cdef tuple ns = (s.stx_atime.tv_sec * 1000000000 + s.stx_atime.tv_nsec,
                     s.stx_mtime.tv_sec * 1000000000 + s.stx_mtime.tv_nsec,
                     s.stx_ctime.tv_sec * 1000000000 + s.stx_ctime.tv_nsec)
    cdef tuple floats = (s.stx_atime.tv_sec + 1e-9 * s.stx_atime.tv_nsec,
                         s.stx_mtime.tv_sec + 1e-9 * s.stx_mtime.tv_nsec,
                         s.stx_ctime.tv_sec + 1e-9 * s.stx_ctime.tv_nsec)
    device = os.makedev(s.stx_dev_major, s.stx_dev_minor)
    return os.stat_result(
        (s.stx_mode, s.stx_ino, device, s.stx_nlink, s.stx_uid, s.stx_gid, s.stx_size, *seconds,
         *floats, *ns, s.stx_blksize, s.stx_blocks,
         os.makedev(s.stx_rdev_major, s.stx_rdev_minor))
    )


def stat_now(int dir, bytes path, bint follow):
    """(device, os.stat_result) of a path, from the kernel's caches only; None if it is not in them. Never blocks."""
    cdef statx found
    cdef int fd = ur_locate_now(dir, path, 0 if follow else O_NOFOLLOW, &found)
    if fd < 0:
        return None
    c_close(fd)
    return os.makedev(found.stx_dev_major, found.stx_dev_minor), make_stat(&found)


ur_only_core_makes(FileOp)
ur_only_core_makes(Ending)
ur_abstract(OpOwner)
