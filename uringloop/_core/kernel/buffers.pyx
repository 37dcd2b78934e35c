# BufferPool: the receive buffers of a loop. Owns their memory, and knows the owner of each buffer: the kernel, the free
# list, or a receiver that got a completion and has not given the buffer back yet. With a ring it is a registered
# provided-buffer group, from which the kernel picks buffers; without, a plain stack. Never receives anything itself.
from libc.stdint cimport int32_t, uint16_t, uint64_t, uintptr_t
from libc.stdlib cimport calloc, free, realloc
from libc.string cimport memset

from uringloop._core.kernel.abi cimport (
    IORING_REGISTER_PBUF_RING, IORING_UNREGISTER_PBUF_RING, io_uring_buf, io_uring_buf_reg, ur_io_uring_register,
    ur_store16_release,
)
from uringloop._core.kernel.libc cimport (
    ENOMEM, MADV_DONTFORK, MAP_ANONYMOUS, MAP_FAILED, MAP_PRIVATE, PROT_READ, PROT_WRITE, madvise, mmap, munmap,
)
from uringloop._core.lifetime.counters cimport COUNT_BUFFER, count_freed, count_made
from uringloop._core.lifetime.guard cimport URINGLOOP_DEBUG


cdef int MOST_CHUNKS = 16

cdef enum:
    BULK_ROOM = 16777216     # the most bytes that all bulk receivers together take with one receive each
    LEAST_BULK = 262144      # the least for each receiver: as much as asyncio's own loop takes
    MOST_BULK = 1048576
    POISON = 0xDB           # debug builds fill a free buffer with it


cdef class BufferPool:
    def __cinit__(self, unsigned count, unsigned size):
        self.ring_fd = -1
        self.size = size
        self.capacity = count * 16
        self.chunks = <char **> calloc(MOST_CHUNKS, sizeof(char *))
        self.arrivals = <Arrival *> calloc(self.capacity, sizeof(Arrival))
        self.addresses = <char **> calloc(self.capacity, sizeof(char *))
        self.free = <int32_t *> calloc(self.capacity, sizeof(int32_t))
        if self.chunks is NULL or self.arrivals is NULL or self.addresses is NULL or self.free is NULL:
            raise MemoryError
        if not self._add(count):
            raise MemoryError

    def __dealloc__(self):
        self.close()
        free(self.chunks)
        free(self.arrivals)
        free(self.addresses)
        free(self.free)

    def __repr__(self):
        where = "registered" if self.ring_fd >= 0 else "unregistered"
        return f"<BufferPool {self.count} x {self.size} bytes, {self.out} out, {where}>"

    cdef bint _add(self, unsigned count) noexcept:
        """Make `count` more buffers. Their memory is mapped, but becomes resident only when data arrives in it."""
        cdef size_t size = <size_t> count * self.size
        cdef char *chunk
        cdef unsigned i
        if self.chunk_count == <unsigned> MOST_CHUNKS or self.count + count > self.capacity:
            return False
        chunk = <char *> mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
        if <void *> chunk == MAP_FAILED:
            return False
        self.chunks[self.chunk_count] = chunk
        self.chunk_count += 1
        for i in range(count):
            self.addresses[self.count + i] = chunk + <size_t> i * self.size
        self.count += count
        for i in range(self.count - count, self.count):
            self._provide(i)
        return True

    cdef bint grow(self) noexcept:
        """Double the number of buffers, after all were in use; return False if there are as many as allowed."""
        return self._add(self.count)

    cdef int register(self, int ring_fd) noexcept:
        """Hand all free buffers to a ring; return 0, or -errno (receives then work without a buffer group)."""
        cdef io_uring_buf_reg request
        cdef size_t size = self.capacity * sizeof(io_uring_buf)
        cdef void *area
        cdef int err
        area = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
        if area == MAP_FAILED:
            return -ENOMEM
        madvise(area, size, MADV_DONTFORK)
        memset(&request, 0, sizeof(request))
        request.ring_addr = <uint64_t> <uintptr_t> area
        request.ring_entries = self.capacity
        err = ur_io_uring_register(ring_fd, IORING_REGISTER_PBUF_RING, &request, 1)
        if err < 0:
            munmap(area, size)
            return err
        self.ring = <io_uring_buf *> area
        self.ring_fd = ring_fd
        self.tail = 0
        while self.free_count:
            self.free_count -= 1
            self._provide(self.free[self.free_count])
        return 0

    cdef void forget_ring(self, bint mapped) noexcept:
        """The ring is gone (replaced, closed, or a parent process's, whose memory is not mapped here): the buffers that
        the kernel had are free again."""
        cdef unsigned i
        if self.ring_fd < 0:
            return
        if mapped:
            munmap(self.ring, self.capacity * sizeof(io_uring_buf))
        self.ring = NULL
        self.ring_fd = -1
        self.free_count = 0
        for i in range(self.count):
            if self.arrivals[i].length < 0:
                self.free[self.free_count] = i
                self.free_count += 1

    cdef void _provide(self, int number) noexcept:
        """Make the buffer free. A negative length marks a buffer that no receiver has."""
        cdef io_uring_buf *slot
        self.arrivals[number].length = -1
        if URINGLOOP_DEBUG and number < <int> self.count:  # else the pool is closed, and its memory unmapped
            memset(self.addresses[number], POISON, self.size)  # a receiver that still reads it, or too far, shows it
        if self.ring_fd < 0:
            self.free[self.free_count] = number
            self.free_count += 1
            return
        slot = &self.ring[self.tail & (self.capacity - 1)]
        slot.addr = <uint64_t> <uintptr_t> self.addresses[number]
        slot.len = self.size
        slot.bid = number
        self.tail += 1
        # The ring's tail lies in the reserved field of its first slot.
        ur_store16_release(&self.ring[0].resv, self.tail)

    cdef int take(self) noexcept:
        """Without a ring: a buffer to receive into, or -1. `mark_delivered` then makes it the receiver's."""
        if self.free_count == 0 and (self.ring_fd >= 0 or not self.grow()):
            return -1
        self.free_count -= 1
        return self.free[self.free_count]

    cdef void return_unused(self, int number) noexcept:
        """Return a buffer into which nothing was received."""
        self.free[self.free_count] = number
        self.free_count += 1

    cdef void mark_delivered(self, int number) noexcept:
        """A completion has delivered this buffer to a receiver."""
        if URINGLOOP_DEBUG:
            assert 0 <= number < <int> self.count, "a completion with a buffer that the pool does not have"
        self.out += 1
        self.arrivals[number].length = 0
        if URINGLOOP_DEBUG:
            count_made(COUNT_BUFFER)

    cdef void give_back(self, int number) noexcept:
        """The receiver gives the buffer back, after copying the data."""
        self.out -= 1
        if URINGLOOP_DEBUG:
            count_freed(COUNT_BUFFER)
        self._provide(number)

    cdef Py_ssize_t bulk_share(self) noexcept:
        """The most bytes that a bulk receiver takes at once. With several receivers, larger pieces cost less time, but more
        memory if the program doesn't consume them at once. A single receiver takes small pieces, and so stays close behind its
        sender: the data that the sender has just written is still in the caches."""
        if self.bulk <= 1:
            return LEAST_BULK
        return min(max(<Py_ssize_t> BULK_ROOM // self.bulk, <Py_ssize_t> LEAST_BULK), <Py_ssize_t> MOST_BULK)

    cdef void close(self) noexcept:
        """Free the memory. The ring must be closed before, because the kernel writes to the memory until then."""
        cdef unsigned i
        cdef size_t size
        self.forget_ring(True)
        for i in range(self.chunk_count):
            # The first chunk has as many buffers as the second, and each later one as all before it.
            size = self.count >> (self.chunk_count - 1) << (i - 1 if i else 0)
            munmap(self.chunks[i], size * self.size)
        self.chunk_count = self.count = self.free_count = 0
