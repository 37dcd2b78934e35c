# Transfers: reads and writes that have to wait for the kernel. Operations that move the position run one at a time,
# others in any number. Owns the operation that a cancelled call has left in the kernel: its outcome is accounted for when
# it ends, before the next call goes on, so that no byte is lost, doubled or out of order.
import asyncio
import os

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE

from uringloop._core.awaitables.file_op cimport FileOp
from uringloop._core.awaitables.future_op import until_readable, until_writable
from libc.stdint cimport int64_t

from uringloop._core.engine.op cimport OP_IDLE
from uringloop._core.kernel.libc cimport EAGAIN, EINTR
from uringloop._core.lifetime.guard cimport ur_abstract
from uringloop.files.buffered cimport Buffered
from uringloop.files.chunk cimport Borrowed, Chunk, make_chunk
from uringloop.files.descriptor cimport Descriptor

cdef object _sleep = asyncio.sleep


cdef class Transfers(Buffered):
    cdef int op_ended(self, FileOp op) except -1:
        if op is self.current:
            self.settle(op)
        else:
            self.apart_ops -= 1
        return self.ended()

    cdef int settle(self, FileOp op) except -1:
        """Account for the bytes that an operation has moved whose call was cancelled."""
        self.current = None
        if op.res > 0:
            if self.current_kind == CURRENT_AHEAD:
                self.ahead.join((<Chunk> op.memory_owner).data, op.res, False)
            elif self.current_kind == CURRENT_OUT:
                self.wrote(op.res)
            elif self.current_kind == CURRENT_DIRECT:
                self.position += op.res
        return 0

    cdef int put_back(self, bytes data) except -1:
        """The call that took the data was cancelled: make the next call read it again."""
        self.position -= PyBytes_GET_SIZE(data)
        if self.descriptor.stream:
            self.ahead.join(PyBytes_AS_STRING(data), PyBytes_GET_SIZE(data), True)
        else:
            self.ahead.clear()
        return 0

    async def _operate(self, FileOp op, int kind):
        """Run the operation and return its result. If the call is cancelled, the operation stays `current` until it ends."""
        op.owner = self
        self.current = op
        self.current_kind = kind
        try:
            res = await op
        except OSError:
            self.current = None  # the error is the operation's result
            raise
        except BaseException:
            if op.state == OP_IDLE and not op.done:
                self.current = None  # never submitted
            raise
        self.current = None
        return res

    async def _transfer(self, bint writing, keep, size_t data, Py_ssize_t size, int64_t offset, int kind):
        """Read into, or write from, memory that `keep` holds; return the number of bytes, 0 at the end of the file."""
        cdef char *memory = <char *> data
        cdef int64_t res
        cdef Descriptor descriptor = self.descriptor
        size = min(size, <Py_ssize_t> STEP_MOST)
        while True:
            if self.share.spent():
                await _sleep(0)  # before the attempt: a call that is cancelled here has moved no byte yet
            res = -EAGAIN
            if not descriptor.direct:
                res = (descriptor.write_now(memory, size, offset) if writing
                       else descriptor.read_now(memory, size, offset))
            if res == -EAGAIN:
                if descriptor.stream:
                    await (until_writable if writing else until_readable)(self.share.loop, descriptor.fd)
                    if descriptor.tells_writes if writing else descriptor.tells_reads:
                        continue
                res = await self._operate(
                    descriptor.writing(self.share.loop, keep, memory, size, offset) if writing
                    else descriptor.reading(self.share.loop, keep, memory, size, offset), kind)
                if res == -EAGAIN or res == -EINTR:
                    continue
            else:
                self.share.spend(res if res > 0 else 0)
            if res < 0:
                raise OSError(-res, os.strerror(-res))
            return res

    cdef bint takes(self, Borrowed lent, int64_t offset) noexcept:
        """Whether the kernel can read straight into this memory. After a cancelled call the kernel may still write to it:
        only a fixed buffer isn't reused before that has ended. O_DIRECT also requires aligned memory."""
        return lent.fixed is not None and not self.descriptor.stream and (
            not self.descriptor.direct or not (offset | lent.length | <Py_ssize_t> lent.data) & 4095)

    async def _refill(self, Py_ssize_t wanted):
        """Append to the read-ahead; return the number of bytes read, 0 at the end of the file."""
        cdef Chunk chunk
        cdef Py_ssize_t size = self.ahead.next_size(wanted, STEP_MOST)
        cdef int64_t offset = self.next_offset()
        cdef Py_ssize_t skip = 0
        if self.descriptor.direct:
            skip = offset & 4095
            size = (size + skip + 4095) & ~4095
        # Not into the read-ahead itself: the kernel may still write the data after the call was cancelled.
        chunk = make_chunk(size)
        got = await self._transfer(False, chunk, <size_t> chunk.data, size, offset - skip,
                                  CURRENT_AHEAD if self.descriptor.stream else CURRENT_NOTHING)
        got = max(got - skip, 0)
        self.ahead.adopt(chunk, skip, got)
        return got


ur_abstract(Transfers)
