# ByteFile: the binary file that open_file returns. Passes each call to one of its parts: to the cursor, which finishes it at
# once, or, when the call has its turn, to the transfers, which wait for the kernel. No part knows the file. Owns the
# closing: buffered data is written first, and the descriptor is not closed while the kernel works on it.
import asyncio
import io
import os

cimport cython
from libc.stdint cimport int64_t

from uringloop._core.awaitables.file_op import close as close_op
from uringloop._core.awaitables.file_op import fadvise, fallocate, fsync, ftruncate, offers_ftruncate
from uringloop._core.kernel.libc cimport EINVAL
from uringloop._core.loop.loop cimport Loop
from uringloop._core.lifetime.guard cimport ur_python_makes
from uringloop.files.async_file cimport (
    CALL_ADVISE, CALL_ALLOCATE, CALL_CLOSE, CALL_FDATASYNC, CALL_FLUSH, CALL_FSYNC, CALL_NEXT, CALL_PEEK, CALL_PREAD,
    CALL_PWRITE, CALL_READ, CALL_READ1, CALL_READINTO, CALL_READLINE, CALL_READLINES, CALL_SEEK, CALL_TELL,
    CALL_TRUNCATE, CALL_WRITE, CALL_WRITELINES,
)
from uringloop.files.call cimport PENDING, Call, make_call
from uringloop.files.chunk cimport Borrowed, borrow_while_waiting
from uringloop.files.cursor cimport MOVED_FOR_CALL, make_cursor
from uringloop.files.descriptor cimport Descriptor
from uringloop.files.offset_transfers cimport make_offset_transfers
from uringloop.files.ops_in_flight cimport make_ops_in_flight
from uringloop.files.threads import in_thread
from uringloop.files.transfers cimport make_transfers


@cython.no_gc_clear  # the destructor of an object in the same cycle may still use it
cdef class ByteFile(AsyncFile):
    def __cinit__(self, Loop loop, Descriptor descriptor, str mode, Py_ssize_t buffer_size, bint can_read,
                  bint can_write, bint appending, int64_t position):
        self.share.loop = loop
        self.descriptor = descriptor
        self.mode = mode
        self.cursor = make_cursor(descriptor, self.share, buffer_size, can_read, can_write, appending, position)
        self.ops = make_ops_in_flight(self.cursor)
        self.transfers = make_transfers(self.cursor, self.ops)
        self.at_offsets = make_offset_transfers(self.cursor, self.ops)

    cdef bint busy(self) noexcept:
        return self.pending != 0 or self.ops.current is not None

    cdef int bind(self) except -1:
        cdef Loop before = self.share.loop
        AsyncFile.bind(self)
        if before is not None and before._closed:
            self.ops.loop_closed()
        return 0

    def release(self):
        """Close the file, but return its open descriptor, positioned where the file was. First writes out buffered data,
        which may block."""
        cdef int fd = self.fileno()
        cdef int64_t res
        if self.pending or self.ops.any():
            raise RuntimeError("the file is in use")
        res = self.cursor.write_out()
        if res < 0:
            raise OSError(-res, os.strerror(-res), self.name)
        self.descriptor.lend(self.cursor.position)
        return fd

    def __repr__(self):
        return f"<{type(self).__name__} name={self.name!r} mode={self.mode!r}{' closed' if self.closed else ''}>"

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

    @property
    def closed(self):
        return self.descriptor.closed()

    def fileno(self):
        if self.descriptor.closed():
            raise ValueError("I/O operation on closed file")
        return self.descriptor.fd

    def readable(self):
        return self.cursor.can_read

    def writable(self):
        return self.cursor.can_write

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
                outcome = self.cursor.write_now(call.first)
            elif kind == CALL_SEEK:
                outcome = self.cursor.seek_now(call.first, call.second)
            else:
                outcome = self.begin_otherwise(kind, call.first, call.second)
        if outcome is PENDING:
            call.inner = self.wait(kind, call.first, call.second)
        return outcome

    cdef object begin_reading(self, int kind, object first):
        cdef object line
        if kind == CALL_READ:
            return self.cursor.read_now(-1 if first is None else first)
        if kind == CALL_READLINE:
            return self.cursor.read_line_now(-1 if first is None else first)
        line = self.cursor.read_line_now(-1)
        if line is not PENDING and not line:
            raise StopAsyncIteration
        return line

    cdef object begin_otherwise(self, int kind, object first, object second):
        if kind == CALL_PREAD:
            return self.at_offsets.read_now(first, second)
        if kind == CALL_READINTO:
            return self.cursor.read_into_now(first)
        if kind == CALL_READ1:
            return self.cursor.read_some_now(-1 if first is None else first)
        if kind == CALL_CLOSE:
            return self.close_now()
        self.cursor.check_open()
        if kind == CALL_TELL:
            return self.cursor.tell()
        if kind == CALL_FLUSH:
            return None if self.cursor.flush_now() else PENDING
        return PENDING

    cdef object wait(self, int kind, object first, object second):
        """The coroutine of a call that has to wait."""
        cdef bint written = self.cursor.unwritten.size() != 0
        if kind == CALL_PREAD:
            return self._flush_and_pread(first, second) if written else self.at_offsets.read(first, second)
        if kind == CALL_PWRITE:
            return self._flush_and_pwrite(first, second) if written else self.at_offsets.write(first, second)
        if kind == CALL_CLOSE:
            return self._wait_close()
        return self._in_turn(kind, first, second)

    async def _work(self, int kind, first, second):
        """Do a call's work, when it has its turn."""
        while self.ops.current is not None:
            await self.ops.until_ended()
        if kind != CALL_CLOSE:
            self.cursor.check_open()
        if kind == CALL_READ:
            return await self.transfers.read(-1 if first is None else first)
        if kind == CALL_NEXT or kind == CALL_READLINE:
            line = await self.transfers.read_line(-1 if first is None else first)
            if kind == CALL_NEXT and not line:
                raise StopAsyncIteration
            return line
        if kind == CALL_READ1:
            return await self.transfers.read_some(-1 if first is None else first)
        if kind == CALL_READINTO:
            return await self.transfers.read_into(first)
        if kind == CALL_READLINES:
            return await self.transfers.read_lines(-1 if first is None else first)
        if kind == CALL_PEEK:
            await self.transfers.read_some(0)
            return self.cursor.ahead.peek()
        if kind == CALL_WRITE:
            return await self.transfers.write(first)
        if kind == CALL_WRITELINES:
            for line in first:
                if self.cursor.write_now(line) is PENDING:
                    await self.transfers.write(line)
            return None
        if kind == CALL_TELL:
            return self.cursor.tell()
        if kind == CALL_CLOSE:
            return await self._finish()
        await self.transfers.flush()
        if kind == CALL_SEEK:
            return await self._wait_seek(first, second)
        if kind == CALL_TRUNCATE:
            return await self._wait_truncate(first)
        if kind == CALL_FSYNC or kind == CALL_FDATASYNC:
            data_only = kind == CALL_FDATASYNC
            await self.ops.run(fsync(self.share.loop, self.descriptor.fd, data_only, ()), MOVED_FOR_CALL)
        if kind == CALL_ALLOCATE:
            await self.ops.run(fallocate(self.share.loop, self.descriptor.fd, 0, first, second, ()), MOVED_FOR_CALL)
        if kind == CALL_ADVISE:
            await self.ops.run(fadvise(self.share.loop, self.descriptor.fd, 0, 0, first, ()), MOVED_FOR_CALL)
        return None

    async def _flush_and_pread(self, what, int64_t offset):
        self.cursor.check(False)
        await self._in_turn(CALL_FLUSH, None, None)
        return await self.at_offsets.read(what, offset)

    async def _flush_and_pwrite(self, data, int64_t offset):
        cdef Borrowed held = borrow_while_waiting(data, False)  # the caller can't resize it meanwhile
        self.cursor.check(True)
        await self._in_turn(CALL_FLUSH, None, None)
        return await self.at_offsets.write(data, offset)

    # The rest

    async def _wait_seek(self, int64_t offset, int whence):
        if whence < 2:
            if whence < 0:
                raise ValueError(f"whence value {whence} unsupported")
            return self.cursor.seek_now(offset, whence)
        if whence == 2:
            return self.cursor.move_to(offset + await self.transfers.size())
        target = await in_thread(os.lseek, offset, whence, fds=(self.descriptor.fd,))
        return self.cursor.move_to(target)

    async def _wait_truncate(self, size):
        if not self.cursor.can_write:
            raise io.UnsupportedOperation("truncate")
        if size is None:
            size = self.cursor.position
        if size < 0:
            raise OSError(EINVAL, os.strerror(EINVAL))
        self.cursor.ahead.clear()
        if offers_ftruncate(self.share.loop):
            await self.ops.run(ftruncate(self.share.loop, self.descriptor.fd, size, ()), MOVED_FOR_CALL)
        else:
            await in_thread(os.ftruncate, size, fds=(self.descriptor.fd,))
        return size

    # The end

    cdef object close_now(self):
        if self.descriptor.closed():
            return None
        if self.ops.any():
            return PENDING
        try:
            if not self.cursor.flush_now():
                return PENDING
        except OSError:
            return PENDING  # _finish will raise it again, and close the file all the same
        if self.descriptor.closefd and (not self.descriptor.local or self.cursor.can_write and not self.descriptor.memory):
            return PENDING
        self.descriptor.finish(self.cursor.position)
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
                if self.descriptor.closed() or not self.closing.cancelled():
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
                if self.descriptor.closed():
                    raise

    async def _finish(self):
        """Write out the buffered data, then close, even if that failed; but not while the kernel works on the file."""
        if self.descriptor.closed():
            return
        try:
            try:
                await self.transfers.flush()
            except asyncio.CancelledError:
                await self.ops.until_none()
                if not self.descriptor.stream:  # a stream's other end may never read
                    await self.transfers.flush()
                raise
        finally:
            await self.ops.until_none()
            fd = self.descriptor.detach(self.cursor.position)
            if fd >= 0:
                res = await close_op(self.share.loop, fd)
                if res < 0:
                    raise OSError(-res, os.strerror(-res))


ur_python_makes(ByteFile)
