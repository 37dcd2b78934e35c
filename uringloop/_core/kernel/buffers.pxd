from libc.stdint cimport int32_t, uint16_t

from uringloop._core.kernel.abi cimport io_uring_buf


cdef struct Arrival:
    # What a receive left in one buffer, and the next buffer of the same receiver.
    int32_t length
    int32_t next          # -1: none


cdef class BufferPool:
    # The loop's thread only; the kernel takes buffers from the registered ring by itself.
    cdef readonly unsigned count        # buffers there are
    cdef readonly unsigned size         # bytes in each
    cdef unsigned capacity              # how many there may be: the ring's entries
    cdef readonly unsigned out          # delivered to receivers and not given back yet
    cdef char **chunks                  # memory, `count` at first, doubled when it runs dry
    cdef unsigned chunk_count
    cdef Arrival *arrivals              # by buffer number
    cdef char **addresses               # by buffer number
    cdef int32_t *free                  # the ones nobody has, while not registered
    cdef unsigned free_count
    cdef io_uring_buf *ring             # shared with the kernel, while registered
    cdef uint16_t tail
    cdef int bulk                       # receivers that take what arrives without any of these
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
