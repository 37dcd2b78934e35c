# ByteFile: the binary file that open_file returns. Each call finishes at once if Buffered can do it, otherwise it waits
# in turn for Transfers. Owns the closing of the file: buffered data is written first, and the descriptor is not closed
# while the kernel works on it.
import asyncio
import io
import os

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from cpython.exc cimport PyErr_SetObject, PyErr_WriteUnraisable
from libc.errno cimport ESPIPE
from libc.string cimport memcpy

from uringloop._core.awaitables.file_op import close as close_op
from uringloop._core.awaitables.file_op import fadvise, fallocate, fsync, ftruncate, offers_ftruncate, stat_buffer, stat_result, statx_into
from libc.stdint cimport int64_t

from uringloop._core.kernel.libc cimport EINVAL
from uringloop._core.loop.loop cimport Loop
from uringloop._core.lifetime.guard cimport ur_python_makes
from uringloop._core.lifetime.unclosed cimport warn_unclosed
from uringloop.files.async_file cimport (
    CALL_ADVISE, CALL_ALLOCATE, CALL_CLOSE, CALL_FDATASYNC, CALL_FLUSH, CALL_FSYNC, CALL_NEXT, CALL_PEEK, CALL_PREAD,
    CALL_PWRITE, CALL_READ, CALL_READ1, CALL_READINTO, CALL_READLINE, CALL_READLINES, CALL_SEEK, CALL_TELL,
    CALL_TRUNCATE, CALL_WRITE, CALL_WRITELINES,
)
from uringloop.files.buffered cimport shrunk
from uringloop.files.call cimport PENDING, Call, make_call
from uringloop.files.chunk cimport Borrowed, Chunk, borrow_while_waiting, make_chunk
from uringloop.files.descriptor cimport Descriptor
from uringloop.files.positional cimport Positional
from uringloop.files.read_ahead cimport make_read_ahead
from uringloop.files.threads import in_thread
from uringloop.files.transfers cimport CURRENT_AHEAD, CURRENT_DIRECT, CURRENT_NOTHING, CURRENT_OUT
from uringloop.files.write_buffer cimport make_write_buffer
from uringloop.inspect.creation import creation_note

cdef object _where_made = creation_note  # a C variable: at interpreter exit, the module's globals are cleared

cdef class ByteFile(Positional):
    def __cinit__(self, Loop loop, Descriptor descriptor, str mode, Py_ssize_t buffer_size, bint can_read,
                  bint can_write, bint appending, int64_t position):
        self.share.loop = loop
        self.descriptor = descriptor
        self.mode = mode
        self.raw = buffer_size == 0
        self.ahead = make_read_ahead()
        self.unwritten = make_write_buffer(buffer_size)
        self.can_read = can_read
        self.can_write = can_write
        self.appending = appending
        self.position = position

    def __del__(self):
        # As in io's files: write out the buffered data if the program forgot to close the file. This may block. Not in
        # __dealloc__: by then, the collector has cleared the fields of a file that was part of a cycle.
        cdef int64_t res
        if self.descriptor is None or self.is_closed or self.current is not None:
            return
        res = self.write_out()
        if res < 0:
            _not_written(self.descriptor, res)
        try:
            _unclosed(self.descriptor)
        finally:  # also where the warning raises
            self.is_closed = True
            if self.descriptor.closefd:
                self.descriptor.finish(0)  # explicitly: code that records warnings keeps the descriptor alive

    def release(self):
        """Close the file, but return its open descriptor, positioned where the file was. First writes out buffered data,
        which may block."""
        cdef int fd = self.fileno()
        cdef int64_t res
        if self.busy() or self.apart_ops:
            raise RuntimeError("the file is in use")
        res = self.write_out()
        if res < 0:
            raise OSError(-res, os.strerror(-res), self.name)
        self.is_closed = True
        self.descriptor.lend(self.position)
        return fd

    def __repr__(self):
        return f"<{type(self).__name__} name={self.name!r} mode={self.mode!r}{' closed' if self.is_closed else ''}>"

    # Methods that a TextFile lacks

    def read1(self, size=-1, /):
        """Read and return what is available, with one read of the file at most."""
        return make_call(self, CALL_READ1, size, None)

    def readall(self):
        return make_call(self, CALL_READ, -1, None)

    def readinto(self, buffer, /):
        return make_call(self, CALL_READINTO, buffer, None)

    def peek(self, size=0, /):
        """Return the bytes that are available, without moving the position."""
        return make_call(self, CALL_PEEK, size, None)

    def pread(self, size, offset, /):
        """Read at an offset, without using the position; any number of tasks may do so at once. If `size` is a buffer of
        a FixedBuffers, fill that, and return the number of bytes read."""
        return make_call(self, CALL_PREAD, size, offset)

    def pwrite(self, data, offset, /):
        """Write all of the data at an offset, unbuffered; any number of tasks may do so at once."""
        return make_call(self, CALL_PWRITE, data, offset)

    @property
    def name(self):
        return self.descriptor.name

    def fileno(self):
        if self.is_closed:
            raise ValueError("I/O operation on closed file")
        return self.descriptor.fd

    def readable(self):
        return self.can_read

    def writable(self):
        return self.can_write

    def seekable(self):
        return self.descriptor.seekable

    # At once, or in turn

    cdef object begin(self, Call call):
        cdef int kind = call.kind
        cdef object outcome = PENDING
        if not self.busy():
            if kind == CALL_READ or kind == CALL_NEXT or kind == CALL_READLINE:
                outcome = self.begin_reading(kind, call.first)
            elif kind == CALL_WRITE:
                outcome = self.write_now(call.first)
            elif kind == CALL_SEEK:
                outcome = self.seek_now(call.first, call.second)
            else:
                outcome = self.begin_otherwise(kind, call.first, call.second)
        if outcome is PENDING:
            if kind == CALL_PREAD:
                call.inner = self._wait_pread(call.first, call.second)
            elif kind == CALL_PWRITE:
                call.inner = self._wait_pwrite(call.first, call.second)
            elif kind == CALL_CLOSE:
                call.inner = self._wait_close()
            else:
                call.inner = self._in_turn(kind, call.first, call.second)
        return outcome

    cdef object begin_reading(self, int kind, object first):
        cdef object line
        if kind == CALL_READ:
            return self.read_now(-1 if first is None else first)
        if kind == CALL_READLINE:
            return self.read_line_now(-1 if first is None else first)
        line = self.read_line_now(-1)
        if line is not PENDING and not line:
            raise StopAsyncIteration
        return line

    cdef object begin_otherwise(self, int kind, object first, object second):
        if kind == CALL_PREAD:
            return self.pread_now(first, second)
        if kind == CALL_READINTO:
            return self.read_into_now(first)
        if kind == CALL_READ1:
            return self.read_some_now(-1 if first is None else first)
        if kind == CALL_CLOSE:
            return self.close_now()
        if self.is_closed:
            raise ValueError("I/O operation on closed file.")
        if kind == CALL_TELL:
            if self.descriptor.stream and not self.descriptor.seekable:
                raise OSError(ESPIPE, os.strerror(ESPIPE))
            return self.position
        if kind == CALL_FLUSH:
            return None if self.flush_now() else PENDING
        return PENDING

    async def _work(self, int kind, first, second):
        """Do a call's work, when it has its turn."""
        if kind != CALL_CLOSE and self.is_closed:
            raise ValueError("I/O operation on closed file.")
        if kind == CALL_READ:
            return await self._wait_read(-1 if first is None else first)
        if kind == CALL_NEXT or kind == CALL_READLINE:
            line = await self._wait_line(-1 if first is None else first)
            if kind == CALL_NEXT and not line:
                raise StopAsyncIteration
            return line
        if kind == CALL_READ1:
            return await self._wait_some(-1 if first is None else first)
        if kind == CALL_READINTO:
            return await self._wait_into(first)
        if kind == CALL_READLINES:
            return await self._wait_lines(-1 if first is None else first)
        if kind == CALL_PEEK:
            await self._wait_some(0)
            return self.ahead.peek()
        if kind == CALL_WRITE:
            return await self._wait_write(first)
        if kind == CALL_WRITELINES:
            for line in first:
                if self.write_now(line) is PENDING:
                    await self._wait_write(line)
            return None
        if kind == CALL_TELL:
            return self.begin_otherwise(kind, first, second)
        if kind == CALL_CLOSE:
            return await self._finish()
        await self._wait_flush()
        if kind == CALL_SEEK:
            return await self._wait_seek(first, second)
        if kind == CALL_TRUNCATE:
            return await self._wait_truncate(first)
        if kind == CALL_FSYNC or kind == CALL_FDATASYNC:
            await self._operate(fsync(self.share.loop, self.descriptor.fd, kind == CALL_FDATASYNC, ()), CURRENT_NOTHING)
        if kind == CALL_ALLOCATE:
            await self._operate(fallocate(self.share.loop, self.descriptor.fd, 0, first, second, ()), CURRENT_NOTHING)
        if kind == CALL_ADVISE:
            await self._operate(fadvise(self.share.loop, self.descriptor.fd, 0, 0, first, ()), CURRENT_NOTHING)
        return None

    # Reading

    async def _wait_read(self, Py_ssize_t size):
        cdef Py_ssize_t got
        cdef int64_t offset
        self.check(False)
        if self.unwritten.size():
            await self._wait_flush()
        if self.raw and size >= 0:
            return await self._wait_once(size)
        if size < 0:
            size = await self._rest()
            if size < 0:
                return await self._wait_rest()
        elif self.descriptor.stream or self.descriptor.direct or size < self.ahead.window:
            while self.ahead.size() < size:
                if not await self._refill(size - (self.ahead.size())):
                    break
            return self.take(min(size, self.ahead.size()))
        got = self.ahead.size()
        offset = self.position
        result = PyBytes_FromStringAndSize(NULL, size)
        self.ahead.copy_to(PyBytes_AS_STRING(result), min(got, size))
        while got < size:
            came = await self._transfer(False, result, <size_t> PyBytes_AS_STRING(result) + got, size - got, offset + got,
                                       CURRENT_NOTHING)
            if not came:
                break
            got += came
        self.position = offset + min(got, size)
        self.ahead.clear()
        self.ahead.expect_sequential_reads()
        return shrunk(result, min(got, size))

    async def _rest(self):
        """The number of bytes left, if the file's size is known; otherwise -1."""
        if self.descriptor.stream or self.descriptor.direct:
            return -1
        size = await self._size()
        return size - self.position if size > self.position + self.ahead.size() else -1

    async def _wait_rest(self):
        """Read until a read returns nothing: for files whose size is unknown or wrong."""
        while await self._refill(self.ahead.size()):
            pass
        return self.take(self.ahead.size())

    async def _size(self):
        if self.descriptor.local:
            size = self.descriptor.size_now()
            if size >= 0:
                return size
        found = stat_buffer()
        await self._operate(statx_into(self.share.loop, self.descriptor.fd, b"", 0x1000, found, (self.name,)), CURRENT_NOTHING)
        return stat_result(found).st_size

    async def _wait_once(self, Py_ssize_t size):
        """Unbuffered: make one read, or return what a cancelled call has left in the read-ahead."""
        if self.ahead.size():
            return self.take(min(size, self.ahead.size()))
        chunk = make_chunk(max(size, 1))
        got = await self._transfer(False, chunk, <size_t> (<Chunk> chunk).data, size, self.next_offset(),
                                  CURRENT_AHEAD if self.descriptor.stream else CURRENT_NOTHING)
        self.position += got
        return PyBytes_FromStringAndSize((<Chunk> chunk).data, got)

    async def _wait_some(self, Py_ssize_t size):
        """Read what is available; wait for at least one byte, unless the file has ended."""
        self.check(False)
        if self.unwritten.size():
            await self._wait_flush()
        if not self.ahead.size():
            await self._refill(size)
        if size < 0:
            size = self.ahead.size()
        return self.take(min(size, self.ahead.size()))

    async def _wait_line(self, Py_ssize_t size):
        cdef object line
        self.check(False)
        if self.raw:
            return await self._wait_raw_line(size)
        while True:
            line = self.read_line_now(size)
            if line is not PENDING:
                return line
            if self.unwritten.size():
                await self._wait_flush()
            elif not await self._refill(self.ahead.size()):
                size = self.ahead.size() if size < 0 else min(size, self.ahead.size())
                return self.take(size)

    async def _wait_raw_line(self, Py_ssize_t size):
        """Unbuffered: read byte by byte, so as not to read beyond the line."""
        line = bytearray()
        try:
            while not line.endswith(b"\n") and (size < 0 or len(line) < size):
                byte = await self._wait_once(1)
                if not byte:
                    break
                line += byte
        except BaseException:
            self.put_back(bytes(line))
            raise
        return bytes(line)

    async def _wait_lines(self, Py_ssize_t hint):
        lines = []
        total = 0
        try:
            while True:
                line = await self._wait_line(-1)
                if not line:
                    return lines
                lines.append(line)
                total += len(line)
                if 0 < hint < total:
                    return lines
        except BaseException:
            self.put_back(b"".join(lines))
            raise

    async def _wait_into(self, target):
        cdef Borrowed lent = borrow_while_waiting(target, True)
        self.check(False)
        if self.unwritten.size():
            await self._wait_flush()
        if not self.ahead.size() and self.takes(lent, self.position):
            return await self._wait_into_fixed(lent)
        # Read into our own memory: the caller may reuse its buffer as soon as the call is over, also if it is cancelled.
        data = await self._wait_read(lent.length) if not self.raw else await self._wait_once(lent.length)
        memcpy(lent.data, PyBytes_AS_STRING(data), len(data))
        return len(data)

    async def _wait_into_fixed(self, Borrowed lent):
        cdef Py_ssize_t got = 0
        while got < lent.length:
            came = await self._transfer(False, lent.fixed, <size_t> lent.data + got, lent.length - got, self.position + got,
                                       CURRENT_NOTHING)
            got += came
            if not came or self.raw or self.descriptor.direct and came & 4095:
                break
        self.position += got
        return got

    # Writing

    async def _wait_flush(self):
        while self.unwritten.size():
            self.wrote(await self._transfer(True, self.unwritten.chunk, <size_t> self.unwritten.data(),
                                           self.unwritten.size(), self.out_offset(), CURRENT_OUT))

    async def _wait_write(self, data):
        cdef Borrowed lent
        cdef Py_ssize_t done = 0
        outcome = PENDING if self.raw else self.write_now(data)
        if outcome is not PENDING:
            return outcome
        self.check(True)
        lent = borrow_while_waiting(data, False)
        await self._wait_flush()
        if lent.length <= self.unwritten.room:
            self.buffer_bytes(lent.data, lent.length)
            return lent.length
        self.forget_ahead()
        if self.descriptor.direct:
            lent.align()
        try:
            while done < lent.length:
                came = await self._transfer(True, lent.keeper(), <size_t> lent.data + done, lent.length - done,
                                           self.out_offset(), CURRENT_DIRECT)
                done += came
                self.position += came
        except OSError as error:
            error.characters_written = done
            raise
        self.wrote(0)
        return done

    # The rest

    async def _wait_seek(self, int64_t offset, int whence):
        if whence < 2:
            if whence < 0:
                raise ValueError(f"whence value {whence} unsupported")
            return self.seek_now(offset, whence)
        if whence == 2:
            return self.move_to(offset + await self._size())
        target = await in_thread(os.lseek, offset, whence, fds=(self.descriptor.fd,))
        return self.move_to(target)

    async def _wait_truncate(self, size):
        if not self.can_write:
            raise io.UnsupportedOperation("truncate")
        if size is None:
            size = self.position
        if size < 0:
            raise OSError(EINVAL, os.strerror(EINVAL))
        self.ahead.clear()
        if offers_ftruncate(self.share.loop):
            await self._operate(ftruncate(self.share.loop, self.descriptor.fd, size, ()), CURRENT_NOTHING)
        else:
            await in_thread(os.ftruncate, size, fds=(self.descriptor.fd,))
        return size

    # The end

    cdef object close_now(self):
        if self.is_closed:
            return None
        if self.apart_ops:
            return PENDING
        try:
            if not self.flush_now():
                return PENDING
        except OSError:
            return PENDING  # _finish will raise it again, and close the file all the same
        if self.descriptor.closefd and (not self.descriptor.local or self.can_write and not self.descriptor.memory):
            return PENDING
        self.is_closed = True
        self.descriptor.finish(self.position)
        return None

    async def _wait_close(self):
        # Close in a separate task, so that cancelling the caller can't leave the file half closed.
        interrupted = None
        while True:
            if self.closing is None or self.closing.cancelled():
                self.closing = self.share.loop.create_task(self._close_surely())
            try:
                await asyncio.shield(self.closing)
                break
            except asyncio.CancelledError as error:
                if self.is_closed or not self.closing.cancelled():
                    raise
                interrupted = error  # asyncio.run, which cancels all tasks at its end, also cancelled the closing task
        if interrupted is not None:
            raise interrupted

    async def _close_surely(self):
        # asyncio.run cancels all tasks at its end, including this one.
        while True:
            try:
                return await self._in_turn(CALL_CLOSE, None, None)
            except asyncio.CancelledError:
                if self.is_closed:
                    raise

    async def _finish(self):
        """Write out the buffered data, then close, even if that failed; but not while the kernel works on the file."""
        if self.is_closed:
            return
        try:
            try:
                await self._wait_flush()
            except asyncio.CancelledError:
                await self._until_free()
                if not self.descriptor.stream:  # a stream's other end may never read
                    await self._wait_flush()
                raise
        finally:
            await self._until_free()
            self.is_closed = True
            fd = self.descriptor.detach(self.position)
            if fd >= 0:
                res = await close_op(self.share.loop, fd)
                if res < 0:
                    raise OSError(-res, os.strerror(-res))


cdef int _not_written(object descriptor, int64_t res) except -1:
    """Report a failed write through the interpreter: a destructor has no caller to raise it to."""
    PyErr_SetObject(OSError, OSError(-res, os.strerror(-res), descriptor.name))
    PyErr_WriteUnraisable(descriptor)
    return 0


cdef int _unclosed(object descriptor) except -1:
    warn_unclosed(descriptor, f"unclosed file {descriptor.name!r}{_where_made(descriptor.made_at)}", 2)
    return 0


ur_python_makes(ByteFile)
