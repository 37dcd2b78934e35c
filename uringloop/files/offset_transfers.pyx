# OffsetTransfers: reads and writes at given offsets, pread and pwrite, at once or with a wait for the kernel. They move no
# position and need no turn, so any number of tasks can use them at once. They read into bytes, or into a buffer of a
# FixedBuffers. Their caller first flushes the write buffer. Owns nothing; OpsInFlight counts the operations in the kernel.
import asyncio
import os

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from cpython.number cimport PyIndex_Check
from libc.errno cimport ESPIPE
from libc.stdint cimport int64_t
from libc.string cimport memcpy

from uringloop._core.awaitables.file_op cimport FileOp
from uringloop._core.kernel.libc cimport EAGAIN, EINTR, EINVAL
from uringloop._core.lifetime.guard cimport ur_only_core_makes
from uringloop.files.call cimport PENDING
from uringloop.files.chunk cimport Borrowed, Chunk, borrow_fixed, borrow_while_waiting, make_chunk
from uringloop.files.cursor cimport AT_ONCE_MOST, Cursor, shrunk
from uringloop.files.descriptor cimport Descriptor
from uringloop.files.ops_in_flight cimport OpsInFlight
from uringloop.files.transfers cimport STEP_MOST, kernel_may_fill

cdef object _sleep = asyncio.sleep


cdef class OffsetTransfers:
    cdef object read_now(self, object what, object where):
        """Read at once, if possible. `what` is a number of bytes, or a fixed buffer to fill."""
        cdef Borrowed lent = None
        cdef bytes result = None
        cdef char *data
        cdef Py_ssize_t size
        cdef int64_t offset = where
        cdef int64_t res
        cdef Cursor cursor = self.cursor
        cursor.check(False)
        if PyIndex_Check(what):
            size = what
        else:
            lent = borrow_fixed(what)
            size = lent.length
        if offset < 0 or size < 0:
            raise OSError(EINVAL, os.strerror(EINVAL))
        if cursor.descriptor.stream:
            raise OSError(ESPIPE, os.strerror(ESPIPE))
        if cursor.unwritten.size() and not cursor.flush_now():
            return PENDING
        if size > AT_ONCE_MOST or cursor.descriptor.direct:
            return PENDING
        if lent is None:
            result = PyBytes_FromStringAndSize(NULL, size)
            data = PyBytes_AS_STRING(result)
        else:
            data = lent.data
        res = self.read_at_once(data, size, offset)
        if res < 0:
            return cursor.not_now(res)
        return res if lent is not None else shrunk(result, res)

    cdef int64_t read_at_once(self, char *data, Py_ssize_t size, int64_t offset) except? -1:
        cdef Py_ssize_t got = 0
        cdef int64_t res
        while got < size:
            res = self.cursor.descriptor.read_now(data + got, size - got, offset + got)
            if res < 0:
                return res
            if res == 0:
                break
            got += res
        self.cursor.share.spend(got)
        return got

    async def read(self, what, int64_t offset):
        """`what` as for read_now()."""
        cdef Borrowed lent
        self.cursor.check(False)
        if PyIndex_Check(what):
            return await self._read_bytes(what, offset)
        lent = borrow_fixed(what)
        if not kernel_may_fill(self.cursor.descriptor, lent, offset):
            data = await self._read_bytes(lent.length, offset)
            memcpy(lent.data, PyBytes_AS_STRING(data), len(data))
            return len(data)
        return await self._read_all(lent.fixed, <size_t> lent.data, lent.length, offset)

    async def _read_bytes(self, Py_ssize_t size, int64_t offset):
        cdef Py_ssize_t skip = 0
        cdef Chunk chunk
        if not self.cursor.descriptor.direct:
            whole = PyBytes_FromStringAndSize(NULL, size)
            got = await self._read_all(whole, <size_t> PyBytes_AS_STRING(whole), size, offset)
            return shrunk(whole, got)
        skip = offset & 4095
        chunk = make_chunk((size + skip + 4095) & ~4095)
        got = await self._read_all(chunk, <size_t> chunk.data, chunk.room, offset - skip)
        return PyBytes_FromStringAndSize(chunk.data + skip, max(min(got - skip, size), 0))

    async def _read_all(self, keep, size_t data, Py_ssize_t size, int64_t offset):
        """Read `size` bytes, or up to the end of the file; return the number of bytes read."""
        cdef Py_ssize_t got = 0
        while got < size:
            came = await self._apart(False, keep, data + got, size - got, offset + got)
            if not came:
                break
            got += came
            if self.cursor.descriptor.direct and came & 4095:
                break  # only at the end of the file, a read may return an unaligned size
        return got

    async def write(self, data, int64_t offset):
        cdef Borrowed lent = borrow_while_waiting(data, False)
        cdef Py_ssize_t done = 0
        self.cursor.check(True)
        if offset < 0:
            raise OSError(EINVAL, os.strerror(EINVAL))
        if self.cursor.descriptor.direct:
            lent.align()
        try:
            while done < lent.length:
                done += await self._apart(True, lent.keeper(), <size_t> lent.data + done, lent.length - done, offset + done)
        except OSError as error:
            error.characters_written = done
            raise
        finally:
            self.cursor.ahead.clear()  # it may hold the old content
        return done

    async def _apart(self, bint writing, keep, size_t data, Py_ssize_t size, int64_t offset):
        """Run one operation and return its result. If the call is cancelled, the operation is counted until it ends."""
        cdef char *memory = <char *> data
        cdef int64_t res = -EAGAIN
        cdef FileOp op
        cdef Cursor cursor = self.cursor
        cdef Descriptor descriptor = cursor.descriptor
        size = min(size, <Py_ssize_t> STEP_MOST)
        while res == -EAGAIN or res == -EINTR:
            if not descriptor.direct:
                res = (descriptor.write_now(memory, size, offset) if writing
                       else descriptor.read_now(memory, size, offset))
                if res >= 0:
                    cursor.share.spend(res)
                    if cursor.share.spent():
                        await _sleep(0)
            if res == -EAGAIN:
                op = (descriptor.writing(cursor.share.loop, keep, memory, size, offset) if writing
                      else descriptor.reading(cursor.share.loop, keep, memory, size, offset))
                self.ops.begin_apart(op)
                try:
                    res = await op
                except BaseException:
                    self.ops.leave_apart(op)
                    raise
                self.ops.end_apart()
        if res < 0:
            raise OSError(-res, os.strerror(-res))
        return res


cdef OffsetTransfers make_offset_transfers(Cursor cursor, OpsInFlight ops):
    cdef OffsetTransfers transfers = OffsetTransfers.__new__(OffsetTransfers)
    transfers.cursor = cursor
    transfers.ops = ops
    return transfers


ur_only_core_makes(OffsetTransfers)
