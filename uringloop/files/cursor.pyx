# Cursor: the position in an open file, with what was read ahead of it and what was written before it. Reads, writes and
# moves at once: from memory, or by a system call that cannot block. Owns the end of a file that the program has dropped:
# writes out what is left. Never waits: a call that cannot finish at once changes nothing and returns PENDING.
import io
import os

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.exc cimport PyErr_SetObject, PyErr_WriteUnraisable
from libc.errno cimport EIO, ESPIPE
from libc.stdint cimport int64_t

from uringloop._core.awaitables.file_op cimport ur_pwrite
from uringloop._core.kernel.libc cimport EAGAIN, EINTR, EINVAL
from uringloop._core.lifetime.guard cimport ur_only_core_makes
from uringloop._core.lifetime.unclosed cimport warn_unclosed
from uringloop.files.call cimport PENDING
from uringloop.files.chunk cimport Borrowed, Chunk, borrow
from uringloop.files.descriptor cimport Descriptor
from uringloop.files.read_ahead cimport make_read_ahead
from uringloop.files.turn_share cimport TurnShare
from uringloop.files.write_buffer cimport make_write_buffer
from uringloop.inspect.creation import creation_note

cdef extern from "<unistd.h>" nogil:
    int64_t c_lseek "lseek"(int fd, int64_t offset, int whence)

cdef object _where_made = creation_note  # a C variable: at interpreter exit, the module's globals are cleared


cdef bytes shrunk(object data, Py_ssize_t size):
    """Return the first `size` bytes of a bytes object that no other code has seen; `data` must be its only reference."""
    if PyBytes_GET_SIZE(data) == size:
        return data
    return PyBytes_FromStringAndSize(PyBytes_AS_STRING(data), size)


@cython.final
@cython.no_gc_clear  # an operation's end, or the destructor of an object in the same cycle, may still use it
cdef class Cursor:
    cdef int check_open(self) except -1:
        if self.descriptor.closed():
            raise ValueError("I/O operation on closed file.")
        return 0

    cdef int check(self, bint writing) except -1:
        if self.descriptor.closed():
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
                return self.read_once_now(size)
            res = self.refill_now(size)
            if res < 0:
                return self.not_now(res)
        if size < 0:
            size = self.ahead.size()
        return self.take(min(size, self.ahead.size()))

    cdef object read_once_now(self, Py_ssize_t size):
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

    # Cancelled calls

    cdef int account(self, int kind, object memory, Py_ssize_t size) except -1:
        """An operation has moved bytes after its call was cancelled; `memory` is the operation's, `kind` a MovedBytes."""
        if kind == MOVED_AHEAD:
            self.ahead.join((<Chunk> memory).data, size, False)
        elif kind == MOVED_UNWRITTEN:
            self.wrote(size)
        elif kind == MOVED_FROM_CALLER:
            self.position += size
        return 0

    cdef int put_back(self, bytes data) except -1:
        """The call that took the data was cancelled: make the next call read it again."""
        self.position -= PyBytes_GET_SIZE(data)
        if self.descriptor.stream:
            self.ahead.join(PyBytes_AS_STRING(data), PyBytes_GET_SIZE(data), True)
        else:
            self.ahead.clear()
        return 0

    # Position

    cdef object tell(self):
        if self.descriptor.stream and not self.descriptor.seekable:
            raise OSError(ESPIPE, os.strerror(ESPIPE))
        return self.position

    cdef object seek_now(self, int64_t offset, int whence):
        cdef int64_t target = offset
        self.check_open()
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

    # The end

    cdef int finish_dropped(self) except -1:
        """The program has dropped the file without closing it: as io's files do, write out the buffered data, which may
        block, and close it."""
        cdef int64_t res
        if self.descriptor.closed():
            return 0
        res = self.write_out()
        if res < 0:
            _not_written(self.descriptor, res)
        try:
            _unclosed(self.descriptor)
        finally:  # also where the warning raises
            self.descriptor.abandon()  # explicitly: code that records warnings keeps the descriptor alive
        return 0


cdef int _not_written(Descriptor descriptor, int64_t res) except -1:
    """Report a failed write through the interpreter: a destructor has no caller to raise it to."""
    PyErr_SetObject(OSError, OSError(-res, os.strerror(-res), descriptor.name))
    PyErr_WriteUnraisable(descriptor)
    return 0


cdef int _unclosed(Descriptor descriptor) except -1:
    warn_unclosed(descriptor, f"unclosed file {descriptor.name!r}{_where_made(descriptor.made_at)}", 2)
    return 0


cdef Cursor make_cursor(Descriptor descriptor, TurnShare share, Py_ssize_t buffer_size, bint can_read, bint can_write,
                        bint appending, int64_t position):
    cdef Cursor cursor = Cursor.__new__(Cursor)
    cursor.descriptor = descriptor
    cursor.share = share
    cursor.raw = buffer_size == 0
    cursor.can_read = can_read
    cursor.can_write = can_write
    cursor.appending = appending
    cursor.position = position
    cursor.ahead = make_read_ahead()
    cursor.unwritten = make_write_buffer(buffer_size)
    return cursor


ur_only_core_makes(Cursor)
