# Buffered: buffered reads and writes that finish at once: from the read-ahead, into the write buffer, or by a system
# call that cannot block. Owns the position, the read-ahead and the write buffer. Never waits: if a call cannot finish
# now, it changes nothing and returns PENDING, and byte_file.pyx does the work.
import io
import os

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.errno cimport EIO
from libc.stdint cimport int64_t

from uringloop._core.awaitables.file_op cimport ur_pwrite
from uringloop._core.kernel.libc cimport EAGAIN, EINTR, EINVAL
from uringloop._core.lifetime.guard cimport ur_abstract
from uringloop.files.async_file cimport AsyncFile
from uringloop.files.call cimport PENDING
from uringloop.files.chunk cimport Borrowed, borrow

cdef extern from "<unistd.h>" nogil:
    int64_t c_lseek "lseek"(int fd, int64_t offset, int whence)


cdef bytes shrunk(object data, Py_ssize_t size):
    """Return the first `size` bytes of a bytes object that no other code has seen; `data` must be its only reference."""
    if PyBytes_GET_SIZE(data) == size:
        return data
    return PyBytes_FromStringAndSize(PyBytes_AS_STRING(data), size)


cdef class Buffered(AsyncFile):
    cdef int check(self, bint writing) except -1:
        if self.is_closed:
            raise ValueError("I/O operation on closed file.")
        if writing and not self.can_write:
            raise io.UnsupportedOperation("write")
        if not writing and not self.can_read:
            raise io.UnsupportedOperation("read")
        return 0

    cdef object not_now(self, int64_t res):
        """Convert a negative result of a system call: PENDING for -EAGAIN, otherwise raise OSError."""
        if res == -EAGAIN:
            return PENDING
        raise OSError(-res, os.strerror(-res))

    # Reading

    cdef int64_t next_offset(self) noexcept:
        """The offset of the next read, which is behind the read-ahead."""
        return -1 if self.descriptor.stream else self.position + self.ahead.size()

    cdef bytes take(self, Py_ssize_t size):
        cdef bytes taken = self.ahead.take(size)
        self.position += size
        return taken

    cdef void advance(self, Py_ssize_t size) noexcept:
        self.ahead.skip(size)
        self.position += size

    cdef void forget_ahead(self) noexcept:
        """Before a write, drop the read-ahead, as the file may change there. A stream keeps it: it can't be read again."""
        if not self.descriptor.stream:
            self.ahead.clear()

    cdef int64_t refill_now(self, Py_ssize_t wanted) except? -1:
        """Append to the read-ahead; return the number of bytes read, 0 at the end of the file, or -errno."""
        cdef Py_ssize_t size = self.ahead.next_size(wanted, AT_ONCE_MOST)
        cdef int64_t res
        if self.descriptor.direct:
            return -EAGAIN
        res = self.descriptor.read_now(self.ahead.make_room(size), size, self.next_offset())
        if res > 0:
            self.ahead.end += res
            self.share.spend(res)
        return res

    cdef object read_now(self, Py_ssize_t size):
        cdef int64_t res
        self.check(False)
        if size < 0:
            return self.read_rest_now()
        if self.ahead.size() >= size:
            self.share.spend(0)
            return self.take(size)
        if self.raw:
            return self.read_some_now(size)
        if self.unwritten.size() and not self.flush_now():
            return PENDING
        if size >= self.ahead.window:
            return self.read_exactly_now(size)
        while self.ahead.size() < size:
            res = self.refill_now(size - self.ahead.size())
            if res < 0:
                return self.not_now(res)
            if res == 0:
                break
        return self.take(min(size, self.ahead.size()))

    cdef object read_exactly_now(self, Py_ssize_t size):
        """Read straight into the result, without read-ahead: for large reads, and for reads that are not sequential."""
        cdef Py_ssize_t got = self.ahead.size()
        cdef bytes result
        cdef char *data
        cdef int64_t res
        if size > AT_ONCE_MOST or self.descriptor.stream or self.descriptor.direct:
            return PENDING
        result = PyBytes_FromStringAndSize(NULL, size)
        data = PyBytes_AS_STRING(result)
        self.ahead.copy_to(data, got)
        while got < size:
            res = self.descriptor.read_now(data + got, size - got, self.position + got)
            if res < 0:
                return self.not_now(res)
            if res == 0:
                break
            got += res
        self.share.spend(got)
        self.position += got
        self.ahead.clear()
        self.ahead.expect_sequential_reads()
        return shrunk(result, got)

    cdef object read_rest_now(self):
        """Read all that is left into one allocation of the exact size, if the file's size is known."""
        cdef Py_ssize_t left, got = self.ahead.size()
        cdef bytes result
        cdef char *data
        cdef char more
        cdef int64_t res
        if self.unwritten.size() and not self.flush_now():
            return PENDING
        left = self.descriptor.size_now() - self.position
        if self.descriptor.stream or self.descriptor.direct or left <= 0 or left > AT_ONCE_MOST or left < got:
            return PENDING
        result = PyBytes_FromStringAndSize(NULL, left)
        data = PyBytes_AS_STRING(result)
        self.ahead.copy_to(data, got)
        while got <= left:
            if got < left:
                res = self.descriptor.read_now(data + got, left - got, self.position + got)
            elif self.descriptor.local:
                break  # a local file's size is exact
            else:
                res = self.descriptor.read_now(&more, 1, self.position + got)
            if res < 0:
                return self.not_now(res)
            if res == 0:
                break
            got += res
        if got > left:
            return PENDING
        self.share.spend(got)
        self.position += got
        self.ahead.clear()
        return shrunk(result, got)

    cdef object read_some_now(self, Py_ssize_t size):
        """Read what is available, with one system call at most."""
        cdef int64_t res
        self.check(False)
        if not self.ahead.size() and size:
            if self.unwritten.size() and not self.flush_now():
                return PENDING
            if self.raw:
                return self._read_once_now(size)
            res = self.refill_now(size)
            if res < 0:
                return self.not_now(res)
        if size < 0:
            size = self.ahead.size()
        return self.take(min(size, self.ahead.size()))

    def _read_once_now(self, Py_ssize_t size):
        """Make one unbuffered read."""
        cdef bytes result
        cdef int64_t res
        if size > AT_ONCE_MOST or size < 0 or self.descriptor.direct:
            return PENDING
        result = PyBytes_FromStringAndSize(NULL, size)
        res = self.descriptor.read_now(PyBytes_AS_STRING(result), size, self.next_offset())
        if res < 0:
            return self.not_now(res)
        self.share.spend(res)
        self.position += res
        return shrunk(result, res)

    cdef object read_line_now(self, Py_ssize_t size):
        """Read up to and including the next newline, but at most `size` bytes if that is not negative."""
        cdef Py_ssize_t left, looked = 0
        cdef Py_ssize_t found
        cdef int64_t res
        self.check(False)
        if self.raw:
            return PENDING
        while True:
            found = self.ahead.find_line_end(looked)
            if found >= 0:
                left = found
                break
            left = looked = self.ahead.size()
            if 0 <= size <= left:
                break
            if self.unwritten.size() and not self.flush_now():
                return PENDING
            res = self.refill_now(left)  # double the read-ahead each time, so that a long line is copied only a few times
            if res < 0:
                return self.not_now(res)
            if res == 0:
                break
        self.share.spend(0)
        return self.take(left if size < 0 or left < size else size)

    cdef object read_into_now(self, object target):
        cdef Borrowed lent
        cdef Py_ssize_t got
        cdef int64_t res
        self.check(False)
        lent = borrow(target, True)
        got = min(lent.length, self.ahead.size())
        if got < lent.length and (self.descriptor.stream or self.descriptor.direct or lent.length > AT_ONCE_MOST):
            return PENDING
        if self.unwritten.size() and not self.flush_now():
            return PENDING
        self.ahead.copy_to(lent.data, got)
        if self.raw and got < lent.length:
            res = self.descriptor.read_now(lent.data, lent.length, self.position)
            if res < 0:
                return self.not_now(res)
            self.position += res
            return res
        while got < lent.length:
            res = self.descriptor.read_now(lent.data + got, lent.length - got, self.position + got)
            if res < 0:
                return self.not_now(res)
            if res == 0:
                break
            got += res
        self.share.spend(got)
        if got > self.ahead.size():
            self.ahead.clear()
            self.position += got
        else:
            self.advance(got)
        return got

    # Writing

    cdef int64_t out_offset(self) noexcept:
        """The offset where the content of the write buffer belongs."""
        if self.descriptor.stream or self.appending:
            return -1
        return self.position - self.unwritten.size()

    cdef int buffer_bytes(self, const char *data, Py_ssize_t size) except -1:
        """Append to the write buffer, which must have room."""
        self.unwritten.append(data, size)
        self.forget_ahead()
        self.position += size
        return 0

    cdef object write_now(self, object data):
        cdef Borrowed lent
        cdef Py_ssize_t size
        self.check(True)
        if type(data) is bytes:
            size = PyBytes_GET_SIZE(data)
            if not self.unwritten.fits(size):
                return PENDING
            self.buffer_bytes(PyBytes_AS_STRING(data), size)
        else:
            lent = borrow(data, False)
            size = lent.length
            if not self.unwritten.fits(size):
                return PENDING
            self.buffer_bytes(lent.data, size)
        self.share.spend(0)
        return size

    cdef void wrote(self, Py_ssize_t size) noexcept:
        """The kernel has taken `size` bytes of the write buffer."""
        if self.unwritten.took(size) and self.appending and self.descriptor.seekable:
            self.position = c_lseek(self.descriptor.fd, 0, 1)  # behind the data, even if others have appended, too

    cdef int flush_now(self) except -1:
        """Write out what is possible at once; return True when the write buffer is empty."""
        cdef int64_t res
        while self.unwritten.size():
            if self.descriptor.direct:
                return 0
            res = self.descriptor.write_now(self.unwritten.data(), self.unwritten.size(), self.out_offset())
            if res < 0:
                if res == -EAGAIN:
                    return 0
                raise OSError(-res, os.strerror(-res))
            self.share.spend(res)
            self.wrote(res)
        return 1

    cdef int64_t write_out(self) noexcept:
        """Write out the whole write buffer, even if that blocks; return 0, or -errno."""
        cdef int64_t res
        while self.unwritten.size():
            res = ur_pwrite(self.descriptor.fd, self.unwritten.data(), self.unwritten.size(), self.out_offset())
            if res == 0:
                return -EIO
            if res > 0:
                self.unwritten.took(res)
            elif res != -EINTR:
                return res
        return 0

    # Position

    cdef object seek_now(self, int64_t offset, int whence):
        cdef int64_t target = offset
        if self.is_closed:
            raise ValueError("I/O operation on closed file.")
        if not self.descriptor.seekable:
            raise io.UnsupportedOperation("File or stream is not seekable.")
        if whence == 1:
            target += self.position
        elif whence != 0:
            return PENDING
        if self.unwritten.size() and not self.flush_now():
            return PENDING
        return self.move_to(target)

    cdef object move_to(self, int64_t target):
        cdef int64_t distance = target - self.position
        if target < 0:
            raise OSError(EINVAL, os.strerror(EINVAL))
        if self.descriptor.stream:
            target = c_lseek(self.descriptor.fd, target, 0)  # a device gives the position its own meaning; cannot block
            self.ahead.clear()
        else:
            self.ahead.move(distance)
        self.position = target
        self.share.spend(0)
        return target


ur_abstract(Buffered)
