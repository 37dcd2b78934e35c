cimport cython
from libc.stdint cimport int64_t

from uringloop._core.awaitables.file_op cimport FileOp
from uringloop._core.loop.loop cimport Loop


@cython.final
cdef class Descriptor:
    # Only the loop's thread uses these fields.
    cdef readonly int fd              # -1 once closed
    cdef readonly unsigned mode       # st_mode: the kind of file, and its permissions
    cdef readonly bint seekable
    cdef readonly bint stream         # it has no offsets: a pipe, a terminal, a socket, a character device
    cdef readonly bint memory         # on a filesystem in memory: no call has to wait
    cdef readonly bint local          # on a filesystem of this machine
    cdef readonly bint direct         # O_DIRECT: needs aligned memory, and nothing is cached
    cdef readonly bint closefd
    cdef readonly object name
    cdef public object made_at        # debug mode: the stack where it was opened, for the warning that it was not closed
    cdef bint tells_reads             # the file answers at once whether reading would block
    cdef bint tells_writes            # the same for writing
    cdef unsigned misses              # attempts in a row that would have blocked
    cdef unsigned skipped             # reads that made no attempt because of these misses

    cdef inline bint closed(self) noexcept:
        return self.fd < 0

    cdef int64_t read_now(self, char *data, size_t length, int64_t offset) noexcept
    cdef int64_t write_now(self, const char *data, size_t length, int64_t offset) noexcept
    cdef FileOp reading(self, Loop loop, object keep, char *data, size_t length, int64_t offset)
    cdef FileOp writing(self, Loop loop, object keep, const char *data, size_t length, int64_t offset)
    cdef int detach(self, int64_t position) except? -1
    cdef int lend(self, int64_t position) except -1
    cdef int finish(self, int64_t position) except -1
    cdef int abandon(self) except -1
    cdef FileOp mark_remote(self, FileOp op)
    cdef int64_t size_now(self) noexcept
