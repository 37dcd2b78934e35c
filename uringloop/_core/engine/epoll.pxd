from libc.stdint cimport int64_t, uint32_t

from uringloop._core.engine.engine cimport Engine
from uringloop._core.engine.op cimport Op


cdef class FdWaiters:
    # The operations that wait for readiness of one descriptor, in the order in which they were submitted.
    cdef int fd
    cdef uint32_t serial        # epoll returns it: an event with another serial is for a file that is no longer watched
    cdef uint32_t registered    # the events registered with epoll
    cdef bint suspect           # the number may belong to another file since then
    cdef list readers
    cdef list writers
    cdef Op last_reader         # the last to wait: if it waits again, the descriptor is still for the same file
    cdef Op last_writer


cdef class EpollEngine(Engine):
    # Only the loop's thread uses these fields, except `finished`.
    cdef int epoll_fd
    cdef bint coarse            # epoll_pwait2 is missing: timeouts are in milliseconds
    cdef dict waiters_by_fd     # FdWaiters by descriptor; a closed one has none, because its operations ended before
    cdef uint32_t serials       # the last serial of an FdWaiters
    cdef list backlog           # operations to attempt, or (cancelling) to end
    cdef list changed           # FdWaiters whose registration with epoll has to be updated
    cdef list settled           # (op, result, flags), for reap
    cdef object workers         # the executor of NEED_THREAD operations
    cdef object finished        # jobs from worker threads: [op, result]
    cdef dict running           # (future of its end, job, claim) by operation
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
