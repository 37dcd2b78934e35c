# Descriptor: one open file descriptor, read and written without blocking the loop's thread. It reads and writes at given
# offsets, at once or as an operation in the kernel; a stream has no offsets. Owns the descriptor, unless it was lent by
# the caller (closefd=False). Has no position and no buffer.
import os

cimport cython
from libc.errno cimport EISDIR
from libc.stdint cimport int64_t, uint32_t, uint64_t

from uringloop._core.awaitables.file_op cimport (
    FileOp, read_op, statx, ur_locate_now, ur_open_now, ur_pread, ur_pwrite, ur_read_now, ur_stat_now, ur_write_now,
    write_op,
)
from uringloop._core.kernel.abi cimport IOSQE_ASYNC
from uringloop._core.kernel.libc cimport EAGAIN, EINTR, EOPNOTSUPP, c_close
from uringloop._core.loop.loop cimport Loop
from uringloop.files.mounts import filesystem_kind

cdef extern from "<unistd.h>" nogil:
    int64_t c_lseek "lseek"(int fd, int64_t offset, int whence)

cdef extern from "<fcntl.h>" nogil:
    uint64_t O_NOFOLLOW

cdef extern from "<sys/sysmacros.h>" nogil:
    uint64_t device_number "makedev"(uint32_t major, uint32_t minor)

cdef extern from "<sys/stat.h>" nogil:
    bint S_ISREG(unsigned mode)
    bint S_ISBLK(unsigned mode)
    bint S_ISDIR(unsigned mode)

cdef enum:
    HOLD_GIL = 65536   # copying up to this many bytes takes less time than releasing and retaking the GIL
    PATIENCE = 4       # attempts in vain, before only one in RETRY is made
    RETRY = 16

# The most bytes that one operation moves: the ring, too, copies cached data in the loop's thread.
cdef enum:
    MOST_AN_OP = 1 << 20


@cython.final
cdef class Descriptor:
    def __cinit__(self, int fd, object name, bint closefd, bint direct):
        """Inspect the file without asking the server of a remote filesystem, whose answer isn't needed here."""
        cdef statx found
        cdef int res
        self.fd = -1
        res = ur_stat_now(fd, &found)
        if res < 0:
            raise OSError(-res, os.strerror(-res))
        self.mode = found.stx_mode
        if S_ISDIR(self.mode):
            raise IsADirectoryError(EISDIR, os.strerror(EISDIR), name)
        self.name = name
        self.closefd = closefd
        self.stream = not (S_ISREG(self.mode) or S_ISBLK(self.mode))
        kind = filesystem_kind(device_number(found.stx_dev_major, found.stx_dev_minor))
        self.memory = kind == "memory" and not self.stream
        self.local = kind != ""
        self.direct = direct
        # A filesystem with a server may ignore "do not wait": FUSE waits for its server all the same.
        self.tells_reads = self.tells_writes = self.local or self.stream
        self.seekable = c_lseek(fd, 0, 1) >= 0
        self.fd = fd  # the caller owns it until here

    def __dealloc__(self):
        if self.fd >= 0 and self.closefd:
            c_close(self.fd)

    def __repr__(self):
        kind = "stream" if self.stream else "memory" if self.memory else "local" if self.local else "remote"
        return f"<Descriptor fd={self.fd} {kind}>"

    cdef int detach(self, int64_t position) except? -1:
        """Return the descriptor, for the caller to close; if it was lent, only set its position, and return -1."""
        cdef int fd = self.fd
        self.fd = -1
        if self.closefd:
            return fd
        if self.seekable and not self.stream and fd >= 0:
            c_lseek(fd, position, 0)
        return -1

    cdef int lend(self, int64_t position) except -1:
        """Leave the descriptor to other code, which has to close it from now on."""
        self.closefd = False
        self.detach(position)
        return 0

    cdef int finish(self, int64_t position) except -1:
        """Close the descriptor, where that cannot block."""
        cdef int fd = self.detach(position)
        if fd >= 0:
            c_close(fd)
        return 0

    cdef int abandon(self) except -1:
        """Close the descriptor like finish(), but leave the position of a lent one as it is."""
        cdef int fd = self.fd
        self.fd = -1
        if self.closefd and fd >= 0:
            c_close(fd)
        return 0

    cdef int64_t read_now(self, char *data, size_t length, int64_t offset) noexcept:
        """Read as much as is available without waiting; -EAGAIN if nothing is, or if that can't be known."""
        cdef int64_t res
        cdef int fd = self.fd
        if self.tells_reads:
            if self.misses >= PATIENCE:
                self.skipped += 1
                if self.skipped % RETRY:
                    return -EAGAIN
            if length <= HOLD_GIL:
                res = ur_read_now(fd, data, length, offset)
            else:
                with nogil:
                    res = ur_read_now(fd, data, length, offset)
            if res >= 0:
                self.misses = 0
                return res
            if res == -EAGAIN:
                self.misses += not self.stream
                return res
            if res != -EOPNOTSUPP:
                return -EAGAIN if res == -EINTR else res
            self.tells_reads = False
        if self.memory:
            with nogil:
                res = ur_pread(fd, data, length, offset)
            return -EAGAIN if res == -EINTR else res
        return -EAGAIN

    cdef int64_t write_now(self, const char *data, size_t length, int64_t offset) noexcept:
        cdef int64_t res
        cdef int fd = self.fd
        if self.tells_writes:
            if length <= HOLD_GIL:
                res = ur_write_now(fd, data, length, offset)
            else:
                with nogil:
                    res = ur_write_now(fd, data, length, offset)
            if res != -EOPNOTSUPP:
                return -EAGAIN if res == -EINTR else res
            self.tells_writes = False
        if self.memory:
            with nogil:
                res = ur_pwrite(fd, data, length, offset)
            return -EAGAIN if res == -EINTR else res
        return -EAGAIN

    cdef FileOp reading(self, Loop loop, object keep, char *data, size_t length, int64_t offset):
        cdef int64_t size
        if not self.local and not self.stream:
            # On FUSE without a cache, the ring continues after a short read, and starts again at the first offset (seen in
            # Linux 6.18). So a read must not go beyond the end of the file.
            size = self.size_now()
            if size > offset:
                length = min(length, <size_t> (size - offset))
        return self.mark_remote(read_op(loop, self.fd, keep, data, min(length, <size_t> MOST_AN_OP), offset))

    cdef FileOp writing(self, Loop loop, object keep, const char *data, size_t length, int64_t offset):
        return self.mark_remote(write_op(loop, self.fd, keep, data, min(length, <size_t> MOST_AN_OP), offset))

    cdef FileOp mark_remote(self, FileOp op):
        """Keep the ring from trying it in the loop's thread first: a remote filesystem may wait for its server there."""
        if not self.local and not self.stream:
            op.entry.flags = IOSQE_ASYNC
        op.endless = self.stream
        return op

    cdef int64_t size_now(self) noexcept:
        """The size that the kernel has in memory: exact for a local file, a hint for a remote one; or -errno."""
        cdef statx found
        cdef int res = ur_stat_now(self.fd, &found)
        return <int64_t> found.stx_size if res == 0 else res


def open_known(int dir, bytes path, uint64_t flags):
    """Open a file for reading in the loop's own thread, if the kernel can do so from memory: the path is in its cache, and
    leads to a regular file on a local filesystem. Return the descriptor, or None if that is not so."""
    cdef statx found
    cdef int fd = ur_locate_now(dir, path, flags & O_NOFOLLOW, &found)
    if fd < 0:
        return None  # even for a missing file: the filesystem, which may be remote, has to say that it is missing
    c_close(fd)
    if not S_ISREG(found.stx_mode) or not filesystem_kind(device_number(found.stx_dev_major, found.stx_dev_minor)):
        return None
    fd = ur_open_now(dir, path, flags)
    return None if fd < 0 else fd
