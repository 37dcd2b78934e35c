from libc.stdint cimport int32_t, uint16_t

from uringloop._core.kernel.abi cimport io_uring_buf


cdef struct Arrival:
    # The data of a receive in one buffer, and the next buffer of the same receiver.
    int32_t length
    int32_t next          # -1: none


cdef class BufferPool:
    # Only the loop's thread uses these fields; the kernel takes buffers from the registered ring by itself.
    cdef readonly unsigned count        # the number of buffers
    cdef readonly unsigned size         # bytes in each
    cdef unsigned capacity              # the most buffers: the ring's entries
    cdef readonly unsigned out          # buffers delivered to receivers and not given back yet
    cdef char **chunks                  # the memory: `count` buffers at first, doubled when all are in use
    cdef unsigned chunk_count
    cdef Arrival *arrivals              # by buffer number
    cdef char **addresses               # by buffer number
    cdef int32_t *free                  # the free buffers, while not registered
    cdef unsigned free_count
    cdef io_uring_buf *ring             # shared with the kernel, while registered
    cdef uint16_t tail
    cdef int bulk                       # the number of receivers that use memory of their own
    cdef int ring_fd                    # where it is registered, or -1

    cdef int register(self, int ring_fd) noexcept
    cdef void forget_ring(self, bint mapped) noexcept
    cdef int take(self) noexcept
    cdef void return_unused(self, int number) noexcept
    cdef void mark_delivered(self, int number) noexcept
    cdef void give_back(self, int number) noexcept
    cdef bint grow(self) noexcept
    cdef Py_ssize_t bulk_share(self) noexcept
    cdef void close(self) noexcept
    cdef bint _add(self, unsigned count) noexcept
    cdef void _provide(self, int number) noexcept
