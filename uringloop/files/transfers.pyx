# Transfers: reads and writes at the cursor that have to wait for the kernel. Their caller has its turn: no other call uses
# the cursor meanwhile. What the kernel may still write after a call was cancelled is never the read-ahead itself, nor memory
# that the caller may reuse. Owns nothing.
import asyncio
import os

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from libc.stdint cimport int64_t
from libc.string cimport memcpy

from uringloop._core.awaitables.file_op import stat_buffer, stat_result, statx_into
from uringloop._core.awaitables.future_op import until_readable, until_writable
from uringloop._core.kernel.libc cimport EAGAIN, EINTR
from uringloop._core.lifetime.guard cimport ur_only_core_makes
from uringloop.files.call cimport PENDING
from uringloop.files.chunk cimport Borrowed, Chunk, borrow_while_waiting, make_chunk
from uringloop.files.cursor cimport MOVED_AHEAD, MOVED_FOR_CALL, MOVED_FROM_CALLER, MOVED_UNWRITTEN, Cursor, shrunk
from uringloop.files.descriptor cimport Descriptor
from uringloop.files.ops_in_flight cimport OpsInFlight

cdef object _sleep = asyncio.sleep


cdef class Transfers:
    async def _transfer(self, bint writing, keep, size_t data, Py_ssize_t size, int64_t offset, int kind):
        """Read into, or write from, memory that `keep` holds; return the number of bytes, 0 at the end of the file."""
        cdef Cursor cursor = self.cursor
        cdef char *memory = <char *> data
        cdef int64_t res
        cdef Descriptor descriptor = cursor.descriptor
        size = min(size, <Py_ssize_t> STEP_MOST)
        while True:
            if cursor.share.spent():
                await _sleep(0)  # before the attempt: a call that is cancelled here has moved no byte yet
            res = -EAGAIN
            if not descriptor.direct:
                res = (descriptor.write_now(memory, size, offset) if writing
                       else descriptor.read_now(memory, size, offset))
            if res == -EAGAIN:
                if descriptor.stream:
                    await (until_writable if writing else until_readable)(cursor.share.loop, descriptor.fd)
                    if descriptor.tells_writes if writing else descriptor.tells_reads:
                        continue
                res = await self.ops.run(
                    descriptor.writing(cursor.share.loop, keep, memory, size, offset) if writing
                    else descriptor.reading(cursor.share.loop, keep, memory, size, offset), kind)
                if res == -EAGAIN or res == -EINTR:
                    continue
            else:
                cursor.share.spend(res if res > 0 else 0)
            if res < 0:
                raise OSError(-res, os.strerror(-res))
            return res

    async def _refill(self, Py_ssize_t wanted):
        """Append to the read-ahead; return the number of bytes read, 0 at the end of the file."""
        cdef Cursor cursor = self.cursor
        cdef Chunk chunk
        cdef Py_ssize_t size = cursor.ahead.next_size(wanted, STEP_MOST)
        cdef int64_t offset = cursor.next_offset()
        cdef Py_ssize_t skip = 0
        if cursor.descriptor.direct:
            skip = offset & 4095
            size = (size + skip + 4095) & ~4095
        # Not into the read-ahead itself: the kernel may still write the data after the call was cancelled.
        chunk = make_chunk(size)
        got = await self._transfer(False, chunk, <size_t> chunk.data, size, offset - skip,
                                  MOVED_AHEAD if cursor.descriptor.stream else MOVED_FOR_CALL)
        got = max(got - skip, 0)
        cursor.ahead.adopt(chunk, skip, got)
        return got

    # Reading

    async def read(self, Py_ssize_t size):
        cdef Cursor cursor = self.cursor
        cdef Py_ssize_t got
        cdef int64_t offset
        cursor.check(False)
        if cursor.unwritten.size():
            await self.flush()
        if cursor.raw and size >= 0:
            return await self._read_once(size)
        if size < 0:
            size = await self._rest()
            if size < 0:
                return await self._read_rest()
        elif cursor.descriptor.stream or cursor.descriptor.direct or size < cursor.ahead.window:
            while cursor.ahead.size() < size:
                if not await self._refill(size - cursor.ahead.size()):
                    break
            return cursor.take(min(size, cursor.ahead.size()))
        got = cursor.ahead.size()
        offset = cursor.position
        result = PyBytes_FromStringAndSize(NULL, size)
        cursor.ahead.copy_to(PyBytes_AS_STRING(result), min(got, size))
        while got < size:
            came = await self._transfer(False, result, <size_t> PyBytes_AS_STRING(result) + got, size - got, offset + got,
                                       MOVED_FOR_CALL)
            if not came:
                break
            got += came
        cursor.position = offset + min(got, size)
        cursor.ahead.clear()
        cursor.ahead.expect_sequential_reads()
        return shrunk(result, min(got, size))

    async def _rest(self):
        """The number of bytes left, if the file's size is known; otherwise -1."""
        cdef Cursor cursor = self.cursor
        if cursor.descriptor.stream or cursor.descriptor.direct:
            return -1
        size = await self.size()
        return size - cursor.position if size > cursor.position + cursor.ahead.size() else -1

    async def _read_rest(self):
        """Read until a read returns nothing: for files whose size is unknown or wrong."""
        cdef Cursor cursor = self.cursor
        while await self._refill(cursor.ahead.size()):
            pass
        return cursor.take(cursor.ahead.size())

    async def size(self):
        """The file's size."""
        cdef Descriptor descriptor = self.cursor.descriptor
        if descriptor.local:
            size = descriptor.size_now()
            if size >= 0:
                return size
        found = stat_buffer()
        statx = statx_into(self.cursor.share.loop, descriptor.fd, b"", 0x1000, found, (descriptor.name,))
        await self.ops.run(statx, MOVED_FOR_CALL)
        return stat_result(found).st_size

    async def _read_once(self, Py_ssize_t size):
        """Unbuffered: make one read, or return what a cancelled call has left in the read-ahead."""
        cdef Cursor cursor = self.cursor
        if cursor.ahead.size():
            return cursor.take(min(size, cursor.ahead.size()))
        chunk = make_chunk(max(size, 1))
        got = await self._transfer(False, chunk, <size_t> (<Chunk> chunk).data, size, cursor.next_offset(),
                                  MOVED_AHEAD if cursor.descriptor.stream else MOVED_FOR_CALL)
        cursor.position += got
        return PyBytes_FromStringAndSize((<Chunk> chunk).data, got)

    async def read_some(self, Py_ssize_t size):
        """Read what is available; wait for at least one byte, unless the file has ended."""
        cdef Cursor cursor = self.cursor
        cursor.check(False)
        if cursor.unwritten.size():
            await self.flush()
        if not cursor.ahead.size():
            await self._refill(size)
        if size < 0:
            size = cursor.ahead.size()
        return cursor.take(min(size, cursor.ahead.size()))

    async def read_line(self, Py_ssize_t size):
        cdef Cursor cursor = self.cursor
        cdef object line
        cursor.check(False)
        if cursor.raw:
            return await self._read_raw_line(size)
        while True:
            line = cursor.read_line_now(size)
            if line is not PENDING:
                return line
            if cursor.unwritten.size():
                await self.flush()
            elif not await self._refill(cursor.ahead.size()):
                size = cursor.ahead.size() if size < 0 else min(size, cursor.ahead.size())
                return cursor.take(size)

    async def _read_raw_line(self, Py_ssize_t size):
        """Unbuffered: read byte by byte, so as not to read beyond the line."""
        line = bytearray()
        try:
            while not line.endswith(b"\n") and (size < 0 or len(line) < size):
                byte = await self._read_once(1)
                if not byte:
                    break
                line += byte
        except BaseException:
            self.cursor.put_back(bytes(line))
            raise
        return bytes(line)

    async def read_lines(self, Py_ssize_t hint):
        lines = []
        total = 0
        try:
            while True:
                line = await self.read_line(-1)
                if not line:
                    return lines
                lines.append(line)
                total += len(line)
                if 0 < hint < total:
                    return lines
        except BaseException:
            self.cursor.put_back(b"".join(lines))
            raise

    async def read_into(self, target):
        cdef Cursor cursor = self.cursor
        cdef Borrowed lent = borrow_while_waiting(target, True)
        cursor.check(False)
        if cursor.unwritten.size():
            await self.flush()
        if not cursor.ahead.size() and kernel_may_fill(cursor.descriptor, lent, cursor.position):
            return await self._read_into_fixed(lent)
        # Read into our own memory: the caller may reuse its buffer as soon as the call is over, also if it is cancelled.
        data = await self.read(lent.length) if not cursor.raw else await self._read_once(lent.length)
        memcpy(lent.data, PyBytes_AS_STRING(data), len(data))
        return len(data)

    async def _read_into_fixed(self, Borrowed lent):
        cdef Cursor cursor = self.cursor
        cdef Py_ssize_t got = 0
        while got < lent.length:
            came = await self._transfer(False, lent.fixed, <size_t> lent.data + got, lent.length - got, cursor.position + got,
                                       MOVED_FOR_CALL)
            got += came
            if not came or cursor.raw or cursor.descriptor.direct and came & 4095:
                break
        cursor.position += got
        return got

    # Writing

    async def flush(self):
        cdef Cursor cursor = self.cursor
        while cursor.unwritten.size():
            cursor.wrote(await self._transfer(True, cursor.unwritten.chunk, <size_t> cursor.unwritten.data(),
                                           cursor.unwritten.size(), cursor.out_offset(), MOVED_UNWRITTEN))

    async def write(self, data):
        cdef Cursor cursor = self.cursor
        cdef Borrowed lent
        cdef Py_ssize_t done = 0
        outcome = PENDING if cursor.raw else cursor.write_now(data)
        if outcome is not PENDING:
            return outcome
        cursor.check(True)
        lent = borrow_while_waiting(data, False)
        await self.flush()
        if lent.length <= cursor.unwritten.room:
            cursor.buffer_bytes(lent.data, lent.length)
            return lent.length
        cursor.forget_ahead()
        if cursor.descriptor.direct:
            lent.align()
        try:
            while done < lent.length:
                came = await self._transfer(True, lent.keeper(), <size_t> lent.data + done, lent.length - done,
                                           cursor.out_offset(), MOVED_FROM_CALLER)
                done += came
                cursor.position += came
        except OSError as error:
            error.characters_written = done
            raise
        cursor.wrote(0)
        return done


cdef bint kernel_may_fill(Descriptor descriptor, Borrowed lent, int64_t offset) noexcept:
    """Whether the kernel can read straight into this memory. After a cancelled call the kernel may still write to it:
    only a fixed buffer isn't reused before that has ended. O_DIRECT also requires aligned memory."""
    return lent.fixed is not None and not descriptor.stream and (
        not descriptor.direct or not (offset | lent.length | <Py_ssize_t> lent.data) & 4095)


cdef Transfers make_transfers(Cursor cursor, OpsInFlight ops):
    cdef Transfers transfers = Transfers.__new__(Transfers)
    transfers.cursor = cursor
    transfers.ops = ops
    return transfers


ur_only_core_makes(Transfers)
