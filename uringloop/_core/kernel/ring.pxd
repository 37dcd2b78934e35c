from libc.stdint cimport int64_t, uint32_t

from uringloop._core.kernel.abi cimport io_uring_cqe, io_uring_sqe


cdef struct Ring:
    int fd                 # the ring's descriptor, -1 when closed
    int enter_fd           # the argument of io_uring_enter: fd, or its registered index
    uint32_t enter_flags   # REGISTERED_RING, NO_IOWAIT, ABS_TIMER if the kernel offers them
    uint32_t setup_flags   # the flags that the kernel accepted
    uint32_t features      # the features that the kernel reported
    unsigned sq_entries, sq_mask, cq_entries, cq_mask
    unsigned *sq_head      # the kernel's
    unsigned *sq_tail      # ours
    unsigned *sq_flags     # the kernel's
    unsigned *cq_head      # ours
    unsigned *cq_tail      # the kernel's
    unsigned *cq_overflow  # the kernel's
    io_uring_sqe *sqes
    io_uring_cqe *cqes
    unsigned filled        # entries handed out by ring_next, published at the next enter
    void *rings_map
    size_t rings_size
    void *cq_map           # NULL if one mapping holds both queues
    size_t cq_size
    void *sqes_map
    size_t sqes_size
    unsigned nothing       # always 0: while there is no ring, all position pointers point here
    long enters            # system calls made, for statistics and the tests that count them


cdef int ring_open(Ring *ring, unsigned entries, unsigned completions, uint32_t flags) noexcept nogil
cdef void ring_close(Ring *ring) noexcept nogil
cdef int64_t ring_closed_at() noexcept nogil
cdef int ring_enable(Ring *ring) noexcept nogil
cdef void ring_register(Ring *ring) noexcept nogil
cdef void ring_unregister(Ring *ring) noexcept nogil
cdef io_uring_sqe *ring_next(Ring *ring) noexcept nogil
cdef int ring_enter(Ring *ring, unsigned wait, int64_t deadline_ns) noexcept nogil
cdef bint ring_must_enter(Ring *ring) noexcept nogil
cdef bint ring_wants_enter(Ring *ring) noexcept nogil
