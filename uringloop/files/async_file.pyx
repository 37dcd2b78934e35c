# AsyncFile: what every open file of ours has, the methods people know from `io`, each returning a Call. Owns the order
# of calls on one file: what can finish at once does so only while nothing waits, and what waits does so in turn.
# What a call does is its subclass's: bytes in byte_file.pyx, text in text_file.pyx.
import asyncio
import os

from uringloop._core.objects.guard cimport ur_abstract
from uringloop.files.call cimport Call, Callee, make_call


cdef class AsyncFile(Callee):
    """An open file. Made by open_file; a context manager and an iterator over lines, both asynchronous."""

    # Order

    cdef bint busy(self) noexcept:
        return self.pending != 0 or self.current is not None

    cdef int bind(self) except -1:
        if self.pending:
            raise RuntimeError("the file is in use on another event loop")
        if self.loop is not None and self.loop._closed:
            self.apart_ops = 0  # drained, and nobody told us
        self.lock = None
        return Callee.bind(self)

    async def _in_turn(self, int kind, first, second):
        """Do what may have to wait, after everything that was begun before."""
        self.pending += 1
        if self.lock is None:
            self.lock = asyncio.Lock()
        try:
            async with self.lock:
                while self.current is not None:
                    await self._until_ended()
                return await self._work(kind, first, second)
        finally:
            self.pending -= 1

    async def _work(self, int kind, first, second):
        raise NotImplementedError

    async def _until_ended(self):
        """One more of the operations that calls have left in the kernel, or that need no turn, has ended."""
        if self.current is not None and self.current.loop.closed:
            self.op_ended(self.current)  # drained, and nobody told us
            return
        self.freed = self.loop.create_future()
        await self.freed

    async def _until_free(self):
        while self.current is not None or self.apart_ops:
            await self._until_ended()

    cdef int ended(self) except -1:
        freed, self.freed = self.freed, None
        if freed is not None and not freed.done():
            freed.set_result(None)
        return 0

    # Reading

    def read(self, size=-1, /):
        """That much, or all that is left."""
        return make_call(self, CALL_READ, size, None)

    def readline(self, size=-1, /):
        return make_call(self, CALL_READLINE, size, None)

    def readlines(self, hint=-1, /):
        return make_call(self, CALL_READLINES, hint, None)

    def __aiter__(self):
        return self

    def __anext__(self):
        return make_call(self, CALL_NEXT, None, None)

    # Writing

    def write(self, data, /):
        return make_call(self, CALL_WRITE, data, None)

    def writelines(self, lines, /):
        return make_call(self, CALL_WRITELINES, lines, None)

    def flush(self):
        """What was written is the kernel's now."""
        return make_call(self, CALL_FLUSH, None, None)

    def fsync(self):
        """What was written, and all about the file, is on the disk."""
        return make_call(self, CALL_FSYNC, None, None)

    def fdatasync(self):
        """What was written is on the disk, and can be read back."""
        return make_call(self, CALL_FDATASYNC, None, None)

    def truncate(self, size=None, /):
        return make_call(self, CALL_TRUNCATE, size, None)

    def allocate(self, offset, length, /):
        """Reserve room on the disk, as posix_fallocate does."""
        return make_call(self, CALL_ALLOCATE, offset, length)

    def advise(self, advice, /):
        """Tell the kernel how the whole file will be used: os.POSIX_FADV_*."""
        return make_call(self, CALL_ADVISE, advice, None)

    # Position

    def seek(self, offset, whence=0, /):
        return make_call(self, CALL_SEEK, offset, whence)

    def tell(self):
        return make_call(self, CALL_TELL, None, None)

    # The end

    def close(self):
        """Flush and close; a second time does nothing."""
        return make_call(self, CALL_CLOSE, None, None)

    async def __aenter__(self):
        if self.closed:
            raise ValueError("I/O operation on closed file.")
        return self

    def __aexit__(self, kind, error, traceback):
        return make_call(self, CALL_CLOSE, None, None)

    @property
    def closed(self):
        return self.is_closed

    # About it

    def fileno(self):
        raise NotImplementedError

    def isatty(self):
        return os.isatty(self.fileno())


ur_abstract(AsyncFile)
