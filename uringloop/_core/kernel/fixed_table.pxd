cdef enum FixedSlotState:
    SLOT_FREE
    SLOT_LIVE
    SLOT_LEFT      # the owner of the memory is gone, and the ring still has it pinned


cdef struct FixedSlot:
    void *memory
    size_t length
    int state          # FixedSlotState; written by any thread, atomic
    bint on_ring       # the kernel has it pinned


cdef class FixedTable:
    # Only the loop's thread uses these, except in `leave`.
    cdef FixedSlot *slots
    cdef unsigned used          # slots from this one on were never used
    cdef int ring_fd            # the ring where the table is registered, or -1
    cdef int left               # some slot is SLOT_LEFT; atomic

    cdef int add(self, int ring_fd, void *memory, size_t length, int *number) noexcept
    cdef void leave(self, int number) noexcept
    cdef bint has(self, int number) noexcept
    cdef void sweep(self) noexcept
    cdef void moved(self, int ring_fd) noexcept
    cdef int _make(self, int ring_fd) noexcept
    cdef int _put(self, unsigned number, void *memory, size_t length) noexcept
