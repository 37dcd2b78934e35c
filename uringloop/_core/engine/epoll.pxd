from libc.stdint cimport int64_t, uint32_t

from uringloop._core.engine.engine cimport Engine
from uringloop._core.engine.op cimport Op


cdef class FdWaiters:
    # One descriptor's operations that wait for readiness, in the order they were submitted.
    cdef int fd
    cdef uint32_t serial        # epoll says it back: an event with another is of a file that is not watched any more
    cdef uint32_t registered    # what epoll was told
    cdef bint suspect           # the number may have been given to another file since then
    cdef list readers
    cdef list writers
    cdef Op last_reader         # who waited last: waiting again, they vouch for the descriptor
    cdef Op last_writer


cdef class EpollEngine(Engine):
    # The loop's thread only, but for `finished`.
    cdef int epoll_fd
    cdef bint coarse            # no epoll_pwait2: milliseconds
    cdef dict waiters_by_fd     # by descriptor; a closed descriptor has none, its operations ended before
    cdef uint32_t serials       # of FdWaiters
    cdef list backlog           # operations to attempt, or (cancelling) to end
    cdef list changed           # FdWaiters whose operations changed since epoll was told
    cdef list settled           # (op, result, flags), for reap
    cdef object workers         # the executor of NEED_THREAD operations
    cdef object finished        # jobs from worker threads: [op, result]
    cdef dict running           # (a future of its end, job, claim) by operation
    cdef long enters
    cdef unsigned blind_turns

    cdef int flush(self) except -1
    cdef int attempt(self, Op op, uint32_t *flags) except? -32000
    cdef bint advance(self, Op op) except -1
    cdef int settle(self, Op op, int res, uint32_t flags) except -1
    cdef bint has_last_completion(self, Op op) except -1
    cdef int end(self, Op op) except -1
    cdef int add_waiter(self, Op op) except -1
    cdef int remove_waiter(self, Op op) except -1
    cdef int update_interests(self) except -1
    cdef int update_interest(self, FdWaiters waiters) except -1
    cdef int wait(self, int64_t deadline_ns) except -1
    cdef int start_blocking(self, Op op) except -1
    cdef bint withdraw_job(self, Op op) except -1
    cdef int _ready(self, int fd, uint32_t serial, uint32_t events) except -1
    cdef list _advance_all(self, list waiting)
    cdef int _renew(self) except -1
    cdef int _end_running(self) except -1
    cdef void _close_epoll(self) noexcept
