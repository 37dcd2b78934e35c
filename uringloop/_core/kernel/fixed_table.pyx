# FixedTable: the table of a ring's registered buffers, memory that the kernel has pinned once for many transfers. Owns
# the table and the state of each slot, but never the memory. The memory's owner lives until the last transfer has ended,
# then calls `leave` from any thread; the loop's thread frees the slot when it next enters the kernel.
from libc.stdint cimport uint64_t, uintptr_t
from libc.stdlib cimport calloc, free
from libc.string cimport memset

from uringloop._core.kernel.abi cimport (
    IORING_REGISTER_BUFFERS2, IORING_REGISTER_BUFFERS_UPDATE, IORING_RSRC_REGISTER_SPARSE, io_uring_rsrc_register,
    io_uring_rsrc_update2, ur_io_uring_register,
)
from uringloop._core.kernel.libc cimport ENOBUFS, iovec
from uringloop._core.lifetime.guard cimport ur_load_int, ur_store_int

cdef enum:
    MOST_SLOTS = 1024


cdef class FixedTable:
    def __cinit__(self):
        self.ring_fd = -1
        self.slots = <FixedSlot *> calloc(MOST_SLOTS, sizeof(FixedSlot))
        if self.slots is NULL:
            raise MemoryError

    def __dealloc__(self):
        free(self.slots)

    def __repr__(self):
        live = sum(self.slots[i].state == SLOT_LIVE for i in range(self.used))
        return f"<FixedTable {live} of {MOST_SLOTS} in use>"

    cdef int add(self, int ring_fd, void *memory, size_t length, int *number) noexcept:
        """Pin the memory, and put it into a free slot; return 0, or -errno."""
        cdef int err = 0
        cdef unsigned i = 0
        if self.ring_fd < 0:
            err = self._make(ring_fd)
        self.sweep()
        while i < self.used and self.slots[i].state != SLOT_FREE:
            i += 1
        if i == MOST_SLOTS:
            return -ENOBUFS
        if err == 0:
            err = self._put(i, memory, length)
        if err < 0:
            return err
        self.slots[i].memory = memory
        self.slots[i].length = length
        self.slots[i].on_ring = True
        ur_store_int(&self.slots[i].state, SLOT_LIVE)
        self.used = max(self.used, i + 1)
        number[0] = i
        return 0

    cdef void leave(self, int number) noexcept:
        """No transfer will use the slot any more; called from any thread. The memory may be unmapped at once: the kernel
        keeps the pages until `sweep`."""
        ur_store_int(&self.slots[number].state, SLOT_LEFT)
        ur_store_int(&self.left, 1)

    cdef bint has(self, int number) noexcept:
        """Whether entries may use the slot. Not after a move to a ring that could not pin the memory again."""
        return self.slots[number].on_ring

    cdef void sweep(self) noexcept:
        """Unpin the slots that were left."""
        cdef unsigned i
        if not ur_load_int(&self.left):
            return
        ur_store_int(&self.left, 0)
        for i in range(self.used):
            if ur_load_int(&self.slots[i].state) == SLOT_LEFT:
                if self.slots[i].on_ring and self._put(i, NULL, 0) < 0:
                    continue  # it stays pinned until the ring is gone, and the slot stays in use
                self.slots[i].on_ring = False
                ur_store_int(&self.slots[i].state, SLOT_FREE)

    cdef void moved(self, int ring_fd) noexcept:
        """A new ring has replaced the old one: pin everything again. Memory that it refuses to pin is transferred like
        ordinary memory."""
        cdef unsigned i
        cdef int err
        if self.ring_fd < 0:
            return
        err = self._make(ring_fd)
        for i in range(self.used):
            self.slots[i].on_ring = False
            if ur_load_int(&self.slots[i].state) == SLOT_LIVE and err == 0:
                self.slots[i].on_ring = self._put(i, self.slots[i].memory, self.slots[i].length) == 0
        self.sweep()

    cdef int _make(self, int ring_fd) noexcept:
        cdef io_uring_rsrc_register request
        cdef int err
        memset(&request, 0, sizeof(request))
        request.nr = MOST_SLOTS
        request.flags = IORING_RSRC_REGISTER_SPARSE
        self.ring_fd = -1
        err = ur_io_uring_register(ring_fd, IORING_REGISTER_BUFFERS2, &request, sizeof(request))
        if err == 0:
            self.ring_fd = ring_fd
        return err

    cdef int _put(self, unsigned number, void *memory, size_t length) noexcept:
        cdef io_uring_rsrc_update2 update
        cdef iovec part
        cdef int err
        part.iov_base = memory
        part.iov_len = length
        memset(&update, 0, sizeof(update))
        update.offset = number
        update.data = <uint64_t> <uintptr_t> &part
        update.nr = 1
        err = ur_io_uring_register(self.ring_fd, IORING_REGISTER_BUFFERS_UPDATE, &update, sizeof(update))
        return min(err, 0)
