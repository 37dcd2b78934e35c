# Ring: one io_uring: set up, submit, enter. Owns its descriptor and its mappings. It sets up the ring, hands out
# submission entries, publishes them and enters the kernel. Never touches a Python object, never waits in any other way,
# and doesn't know what an entry is for: the engine (uring.pyx) walks the completions.
from libc.stdint cimport INT64_MAX, uint64_t, uintptr_t
from libc.string cimport memset

from uringloop._core.kernel.abi cimport (
    IORING_ENTER_ABS_TIMER, IORING_ENTER_EXT_ARG, IORING_ENTER_GETEVENTS, IORING_ENTER_REGISTERED_RING,
    IORING_FEAT_SINGLE_MMAP, IORING_OFF_CQ_RING, IORING_OFF_SQES, IORING_OFF_SQ_RING, IORING_REGISTER_ENABLE_RINGS,
    IORING_REGISTER_RING_FDS, IORING_SETUP_CLAMP, IORING_SETUP_CQSIZE, IORING_SETUP_NO_SQARRAY,
    IORING_SETUP_R_DISABLED, IORING_SQ_CQ_OVERFLOW, IORING_SQ_TASKRUN, IORING_UNREGISTER_RING_FDS,
    io_uring_getevents_arg, io_uring_params, io_uring_rsrc_update, io_uring_timespec, ur_io_uring_enter,
    ur_io_uring_register, ur_io_uring_setup, ur_load_acquire, ur_load_relaxed, ur_now_ns, ur_store_release,
)
from uringloop._core.kernel.libc cimport (
    MADV_DONTFORK, MAP_FAILED, MAP_POPULATE, MAP_SHARED, PROT_READ, PROT_WRITE, c_close, errno, madvise, mmap,
    munmap,
)
from uringloop._core.lifetime.guard cimport ur_load_ulong, ur_store_ulong


cdef long _closed_at  # when any thread of this process last closed a ring


cdef int ring_open(Ring *ring, unsigned entries, unsigned completions, uint32_t flags) noexcept nogil:
    """Make the ring; return 0, or -errno with nothing left behind. Uses `flags` as they are: probe.pyx chose them."""
    cdef io_uring_params params
    cdef int fd
    memset(ring, 0, sizeof(Ring))
    memset(&params, 0, sizeof(params))
    _absent(ring)
    params.flags = flags | IORING_SETUP_CQSIZE | IORING_SETUP_CLAMP
    params.cq_entries = completions
    fd = ur_io_uring_setup(entries, &params)
    if fd < 0:
        return fd
    ring.fd = ring.enter_fd = fd
    ring.setup_flags = params.flags
    ring.features = params.features
    cdef int err = _map(ring, &params)
    if err < 0:
        ring_close(ring)
    return err


cdef int _map(Ring *ring, io_uring_params *params) noexcept nogil:
    cdef char *sq
    cdef char *cq
    cdef unsigned *array
    cdef unsigned i
    cdef size_t cq_end = params.cq_off.cqes + params.cq_entries * sizeof(io_uring_cqe)
    ring.rings_size = params.sq_off.array + params.sq_entries * sizeof(unsigned)
    if params.features & IORING_FEAT_SINGLE_MMAP and cq_end > ring.rings_size:
        ring.rings_size = cq_end
    ring.rings_map = _map_one(ring.fd, ring.rings_size, IORING_OFF_SQ_RING)
    if ring.rings_map is NULL:
        return -errno
    sq = cq = <char *> ring.rings_map
    if not params.features & IORING_FEAT_SINGLE_MMAP:
        ring.cq_size = cq_end
        ring.cq_map = _map_one(ring.fd, ring.cq_size, IORING_OFF_CQ_RING)
        if ring.cq_map is NULL:
            return -errno
        cq = <char *> ring.cq_map
    ring.sqes_size = params.sq_entries * sizeof(io_uring_sqe)
    ring.sqes_map = _map_one(ring.fd, ring.sqes_size, IORING_OFF_SQES)
    if ring.sqes_map is NULL:
        return -errno
    ring.sqes = <io_uring_sqe *> ring.sqes_map
    ring.sq_head = <unsigned *> (sq + params.sq_off.head)
    ring.sq_tail = <unsigned *> (sq + params.sq_off.tail)
    ring.sq_flags = <unsigned *> (sq + params.sq_off.flags)
    ring.sq_entries = params.sq_entries
    ring.sq_mask = params.sq_entries - 1
    ring.cq_head = <unsigned *> (cq + params.cq_off.head)
    ring.cq_tail = <unsigned *> (cq + params.cq_off.tail)
    ring.cq_overflow = <unsigned *> (cq + params.cq_off.overflow)
    ring.cqes = <io_uring_cqe *> (cq + params.cq_off.cqes)
    ring.cq_entries = params.cq_entries
    ring.cq_mask = params.cq_entries - 1
    if not ring.setup_flags & IORING_SETUP_NO_SQARRAY:
        # The indirection of older kernels: slot i always names entry i.
        array = <unsigned *> (sq + params.sq_off.array)
        for i in range(ring.sq_entries):
            array[i] = i
    return 0


cdef void *_map_one(int fd, size_t size, uint64_t offset) noexcept nogil:
    cdef void *area = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, offset)
    if area == MAP_FAILED:
        return NULL
    # A forked child must not map the ring: if two processes advance one head, they corrupt it for both.
    madvise(area, size, MADV_DONTFORK)
    return area


cdef void ring_close(Ring *ring) noexcept nogil:
    """Unmap and close the ring. The kernel cancels the operations still in it, and doesn't report when that is done."""
    if ring.sqes_map is not NULL:
        munmap(ring.sqes_map, ring.sqes_size)
    if ring.cq_map is not NULL:
        munmap(ring.cq_map, ring.cq_size)
    if ring.rings_map is not NULL:
        munmap(ring.rings_map, ring.rings_size)
    if ring.fd >= 0:
        c_close(ring.fd)
        ur_store_ulong(<unsigned long *> &_closed_at, ur_now_ns())
    _absent(ring)


cdef int64_t ring_closed_at() noexcept nogil:
    """When this process last closed a ring. The kernel takes a ring down in the background, and counts its memory as locked
    until that is done."""
    return ur_load_ulong(<unsigned long *> &_closed_at)


cdef void _absent(Ring *ring) noexcept nogil:
    """Mark the ring as absent. To its readers it then looks like a ring in which nothing happens."""
    ring.sqes_map = ring.cq_map = ring.rings_map = NULL
    ring.fd = ring.enter_fd = -1
    ring.enter_flags &= ~IORING_ENTER_REGISTERED_RING
    ring.nothing = ring.filled = 0
    ring.sq_head = ring.sq_tail = ring.sq_flags = ring.cq_head = ring.cq_tail = ring.cq_overflow = &ring.nothing


cdef int ring_enable(Ring *ring) noexcept nogil:
    """Bind a ring that was made disabled to the calling thread; only that thread may enter it from now on."""
    if ring.setup_flags & IORING_SETUP_R_DISABLED:
        return ur_io_uring_register(ring.fd, IORING_REGISTER_ENABLE_RINGS, NULL, 0)
    return 0


cdef void ring_register(Ring *ring) noexcept nogil:
    """Register the ring's descriptor, which saves its look-up in each enter. A thread has only 16 slots for that, so a
    failure is no error.

    The slot belongs to the calling thread, and keeps the ring alive as an open descriptor does: until that thread frees
    the slot, the ring outlives its descriptor, with all files that its operations use and all memory that it has pinned."""
    cdef io_uring_rsrc_update update
    if ring.enter_flags & IORING_ENTER_REGISTERED_RING:
        return
    memset(&update, 0, sizeof(update))
    update.offset = <uint32_t> -1
    update.data = <uint64_t> ring.fd
    if ur_io_uring_register(ring.fd, IORING_REGISTER_RING_FDS, &update, 1) == 1:
        ring.enter_fd = <int> update.offset
        ring.enter_flags |= IORING_ENTER_REGISTERED_RING


cdef void ring_unregister(Ring *ring) noexcept nogil:
    """Free the slot. Only the thread that called ring_register may do so."""
    cdef io_uring_rsrc_update update
    if not ring.enter_flags & IORING_ENTER_REGISTERED_RING:
        return
    memset(&update, 0, sizeof(update))
    update.offset = <uint32_t> ring.enter_fd
    ur_io_uring_register(ring.fd, IORING_UNREGISTER_RING_FDS, &update, 1)
    ring.enter_fd = ring.fd
    ring.enter_flags &= ~IORING_ENTER_REGISTERED_RING


cdef io_uring_sqe *ring_next(Ring *ring) noexcept nogil:
    """The next free entry, zeroed; or NULL if the queue is full, and the kernel must be entered first."""
    cdef unsigned tail = ring.sq_tail[0] + ring.filled
    if tail - ur_load_acquire(ring.sq_head) >= ring.sq_entries:
        return NULL
    ring.filled += 1
    cdef io_uring_sqe *sqe = &ring.sqes[tail & ring.sq_mask]
    memset(sqe, 0, sizeof(io_uring_sqe))
    return sqe


cdef int ring_enter(Ring *ring, unsigned wait, int64_t deadline_ns) noexcept nogil:
    """Publish the filled entries, submit them, and wait for `wait` completions or until the deadline (CLOCK_MONOTONIC;
    INT64_MAX: forever). Return the number of entries submitted, or -errno."""
    cdef io_uring_getevents_arg arg
    cdef io_uring_timespec ts
    cdef uint32_t flags = ring.enter_flags & ~IORING_ENTER_ABS_TIMER
    cdef unsigned submit
    cdef const void *argp = NULL
    cdef size_t size = 0
    if ring.filled:
        ur_store_release(ring.sq_tail, ring.sq_tail[0] + ring.filled)
        ring.filled = 0
    submit = ring.sq_tail[0] - ur_load_acquire(ring.sq_head)
    flags |= IORING_ENTER_GETEVENTS
    if wait and deadline_ns != INT64_MAX:
        memset(&arg, 0, sizeof(arg))
        if ring.enter_flags & IORING_ENTER_ABS_TIMER:
            flags |= IORING_ENTER_ABS_TIMER
        else:
            deadline_ns -= ur_now_ns()
        if deadline_ns < 0:
            deadline_ns = 0
        ts.tv_sec = deadline_ns // 1000000000
        ts.tv_nsec = deadline_ns % 1000000000
        arg.ts = <uint64_t> <uintptr_t> &ts
        flags |= IORING_ENTER_EXT_ARG
        argp = &arg
        size = sizeof(arg)
    ring.enters += 1
    return ur_io_uring_enter(ring.enter_fd, submit, wait, flags, argp, size)


cdef bint ring_must_enter(Ring *ring) noexcept nogil:
    """Whether there are entries to submit, or completions that the kernel has parked."""
    if ring.filled or ring.sq_tail[0] != ur_load_acquire(ring.sq_head):
        return True
    return ur_load_relaxed(ring.sq_flags) & IORING_SQ_CQ_OVERFLOW != 0


cdef bint ring_wants_enter(Ring *ring) noexcept nogil:
    """Whether the kernel must be entered to make progress: for entries to submit, deferred work, or parked completions."""
    if ring.filled or ring.sq_tail[0] != ur_load_acquire(ring.sq_head):
        return True
    return ur_load_relaxed(ring.sq_flags) & (IORING_SQ_TASKRUN | IORING_SQ_CQ_OVERFLOW) != 0
