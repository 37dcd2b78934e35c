# Positional: pread and pwrite, which read and write at given offsets. They move no position and need no turn, so any
# number of tasks can use them at once. They read into bytes, or into a buffer of a FixedBuffers. Owns nothing; AsyncFile
# counts the operations in the kernel.
import asyncio
import io
import os

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from cpython.number cimport PyIndex_Check
from libc.errno cimport ESPIPE
from libc.stdint cimport int64_t
from libc.string cimport memcpy

from uringloop._core.awaitables.file_op cimport FileOp
from uringloop._core.engine.op cimport OP_IDLE
from uringloop._core.kernel.libc cimport EAGAIN, EINTR, EINVAL
from uringloop._core.lifetime.guard cimport ur_abstract
from uringloop.files.async_file cimport CALL_FLUSH
from uringloop.files.buffered cimport AT_ONCE_MOST, shrunk
from uringloop.files.call cimport PENDING
from uringloop.files.chunk cimport Borrowed, Chunk, borrow_fixed, borrow_while_waiting, make_chunk
from uringloop.files.transfers cimport STEP_MOST, Transfers

cdef object _sleep = asyncio.sleep


cdef class Positional(Transfers):
    cdef object pread_now(self, object what, object where):
        """Read at once, if possible. `what` is a number of bytes, or a fixed buffer to fill."""
        cdef Borrowed lent = None
        cdef bytes result = None
        cdef char *data
        cdef Py_ssize_t size
        cdef int64_t offset = where
        cdef int64_t res
        self.check(False)
        if PyIndex_Check(what):
            size = what
        else:
            lent = borrow_fixed(what)
            size = lent.length
        if offset < 0 or size < 0:
            raise OSError(EINVAL, os.strerror(EINVAL))
        if self.descriptor.stream:
            raise OSError(ESPIPE, os.strerror(ESPIPE))
        if self.unwritten.size() and not self.flush_now():
            return PENDING
        if size > AT_ONCE_MOST or self.descriptor.direct:
            return PENDING
        if lent is None:
            result = PyBytes_FromStringAndSize(NULL, size)
            data = PyBytes_AS_STRING(result)
        else:
            data = lent.data
        res = self.pread_at_once(data, size, offset)
        if res < 0:
            return self.not_now(res)
        return res if lent is not None else shrunk(result, res)

    cdef int64_t pread_at_once(self, char *data, Py_ssize_t size, int64_t offset) except? -1:
        cdef Py_ssize_t got = 0
        cdef int64_t res
        while got < size:
            res = self.descriptor.read_now(data + got, size - got, offset + got)
            if res < 0:
                return res
            if res == 0:
                break
            got += res
        self.share.spend(got)
        return got

    async def _wait_pread(self, what, int64_t offset):
        cdef Borrowed lent
        self.check(False)
        if self.unwritten.size():
            await self._in_turn(CALL_FLUSH, None, None)
        if PyIndex_Check(what):
            return await self._wait_pread_bytes(what, offset)
        lent = borrow_fixed(what)
        if not self.takes(lent, offset):
            data = await self._wait_pread_bytes(lent.length, offset)
            memcpy(lent.data, PyBytes_AS_STRING(data), len(data))
            return len(data)
        return await self._apart_all(lent.fixed, <size_t> lent.data, lent.length, offset)

    async def _wait_pread_bytes(self, Py_ssize_t size, int64_t offset):
        cdef Py_ssize_t skip = 0
        cdef Chunk chunk
        if not self.descriptor.direct:
            whole = PyBytes_FromStringAndSize(NULL, size)
            got = await self._apart_all(whole, <size_t> PyBytes_AS_STRING(whole), size, offset)
            return shrunk(whole, got)
        skip = offset & 4095
        chunk = make_chunk((size + skip + 4095) & ~4095)
        got = await self._apart_all(chunk, <size_t> chunk.data, chunk.room, offset - skip)
        return PyBytes_FromStringAndSize(chunk.data + skip, max(min(got - skip, size), 0))

    async def _apart_all(self, keep, size_t data, Py_ssize_t size, int64_t offset):
        """Read `size` bytes, or up to the end of the file; return the number of bytes read."""
        cdef Py_ssize_t got = 0
        while got < size:
            came = await self._apart(False, keep, data + got, size - got, offset + got)
            if not came:
                break
            got += came
            if self.descriptor.direct and came & 4095:
                break  # only at the end of the file, a read may return an unaligned size
        return got

    async def _wait_pwrite(self, data, int64_t offset):
        cdef Borrowed lent = borrow_while_waiting(data, False)
        cdef Py_ssize_t done = 0
        self.check(True)
        if offset < 0:
            raise OSError(EINVAL, os.strerror(EINVAL))
        if self.unwritten.size():
            await self._in_turn(CALL_FLUSH, None, None)
        if self.descriptor.direct:
            lent.align()
        try:
            while done < lent.length:
                done += await self._apart(True, lent.keeper(), <size_t> lent.data + done, lent.length - done, offset + done)
        except OSError as error:
            error.characters_written = done
            raise
        finally:
            self.ahead.clear()  # it may hold the old content
        return done

    async def _apart(self, bint writing, keep, size_t data, Py_ssize_t size, int64_t offset):
        """Run one operation and return its result. If the call is cancelled, the operation is counted until it ends."""
        cdef char *memory = <char *> data
        cdef int64_t res = -EAGAIN
        cdef FileOp op
        size = min(size, <Py_ssize_t> STEP_MOST)
        while res == -EAGAIN or res == -EINTR:
            if not self.descriptor.direct:
                res = (self.descriptor.write_now(memory, size, offset) if writing
                       else self.descriptor.read_now(memory, size, offset))
                if res >= 0:
                    self.share.spend(res)
                    if self.share.spent():
                        await _sleep(0)
            if res == -EAGAIN:
                op = (self.descriptor.writing(self.share.loop, keep, memory, size, offset) if writing
                      else self.descriptor.reading(self.share.loop, keep, memory, size, offset))
                op.owner = self
                self.apart_ops += 1
                try:
                    res = await op
                except BaseException:
                    if op.state == OP_IDLE and not op.done:
                        self.apart_ops -= 1  # never submitted
                    raise
                self.apart_ops -= 1
                self.ended()
        if res < 0:
            raise OSError(-res, os.strerror(-res))
        return res


ur_abstract(Positional)
