# AsyncFile: the base class of open files, with the methods of `io`'s files, each returning a Call. Owns the order of
# calls on one file: a call may finish at once only while no other call waits, and calls that wait take turns. The two
# subclasses do the work of the calls: ByteFile on bytes, TextFile on text.
import asyncio
import os

from uringloop._core.lifetime.guard cimport ur_abstract
from uringloop.files.call cimport Call, Callee, make_call

# The methods that make calls, in the order of FileCall.
cdef tuple _METHODS = (
    "read", "readline", "__anext__", "readlines", "read1", "readinto", "peek", "write", "writelines", "seek", "tell",
    "truncate", "flush", "fsync", "fdatasync", "allocate", "advise", "pread", "pwrite", "close",
)


cdef class AsyncFile(Callee):
    """An open file, made by open_file. It is an asynchronous context manager, and iterates over lines with `async for`.
    """

    cdef str described(self, int kind):
        name = os.fspath(self.name) if isinstance(self.name, os.PathLike) else self.name
        return f"coroutine '{type(self).__name__}.{_METHODS[kind]}' of {name!r}"

    # Order

    cdef bint busy(self) noexcept:
        """Whether no call may finish at once."""
        return self.pending != 0

    cdef int bind(self) except -1:
        if self.pending:
            raise RuntimeError("the file is in use on another event loop")
        self.lock = None
        return Callee.bind(self)

    async def _in_turn(self, int kind, first, second):
        """Do work that may have to wait, after all calls that began before."""
        self.pending += 1
        if self.lock is None:
            self.lock = asyncio.Lock()
        try:
            async with self.lock:
                return await self._work(kind, first, second)
        finally:
            self.pending -= 1

    async def _work(self, int kind, first, second):
        raise NotImplementedError

    # Reading

    def read(self, size=-1, /):
        """Read `size` bytes or characters; with a negative size or None, all that is left."""
        return make_call(self, CALL_READ, size, None)

    def readline(self, size=-1, /):
        """Read a line with its end; at most `size` bytes or characters, if that isn't negative."""
        return make_call(self, CALL_READLINE, size, None)

    def readlines(self, hint=-1, /):
        """Read all lines into a list; with a positive hint, stop when the lines are longer than that together."""
        return make_call(self, CALL_READLINES, hint, None)

    def __aiter__(self):
        return self

    def __anext__(self):
        return make_call(self, CALL_NEXT, None, None)

    # Writing

    def write(self, data, /):
        """Write all of the data; return its length."""
        return make_call(self, CALL_WRITE, data, None)

    def writelines(self, lines, /):
        """Write each item of an iterable; adds no line ends."""
        return make_call(self, CALL_WRITELINES, lines, None)

    def flush(self):
        """Pass all buffered data to the kernel."""
        return make_call(self, CALL_FLUSH, None, None)

    def fsync(self):
        """Flush, then wait until the file's data and metadata are on the disk."""
        return make_call(self, CALL_FSYNC, None, None)

    def fdatasync(self):
        """Flush, then wait until the file's data is on the disk, with the metadata needed to read it."""
        return make_call(self, CALL_FDATASYNC, None, None)

    def truncate(self, size=None, /):
        """Change the file's size, by default to the current position; return the new size."""
        return make_call(self, CALL_TRUNCATE, size, None)

    def allocate(self, offset, length, /):
        """Reserve space on the disk, as posix_fallocate does."""
        return make_call(self, CALL_ALLOCATE, offset, length)

    def advise(self, advice, /):
        """Tell the kernel how the program will use the whole file; `advice` is one of os.POSIX_FADV_*."""
        return make_call(self, CALL_ADVISE, advice, None)

    # Position

    def seek(self, offset, whence=0, /):
        """Move the position, as io's seek() does; return the new one."""
        return make_call(self, CALL_SEEK, offset, whence)

    def tell(self):
        """Return the position; for a text file, an opaque number for seek()."""
        return make_call(self, CALL_TELL, None, None)

    # The end

    def close(self):
        """Flush and close the file; has no effect if it is closed."""
        return make_call(self, CALL_CLOSE, None, None)

    async def __aenter__(self):
        if self.closed:
            raise ValueError("I/O operation on closed file.")
        return self

    def __aexit__(self, kind, error, traceback):
        return make_call(self, CALL_CLOSE, None, None)

    @property
    def closed(self):
        raise NotImplementedError

    # Attributes

    def fileno(self):
        raise NotImplementedError

    def isatty(self):
        return os.isatty(self.fileno())


ur_abstract(AsyncFile)
