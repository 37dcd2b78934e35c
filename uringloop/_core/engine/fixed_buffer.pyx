# FixedMemory and FixedBuffer: memory that an engine's ring has pinned, and a part of it, which users access through
# memoryviews. FixedMemory owns the mapping. Each view and each operation in the kernel refers to its FixedBuffer, and each
# FixedBuffer to the FixedMemory, so the memory stays in place until the last of them is gone, in whatever order the
# program closes them.
cimport cython
from cpython.buffer cimport PyBuffer_FillInfo

from uringloop._core.engine.engine cimport Engine
from uringloop._core.kernel.libc cimport (
    ENOMEM, MAP_ANONYMOUS, MAP_FAILED, MAP_PRIVATE, PROT_READ, PROT_WRITE, mmap, munmap,
)
from uringloop._core.lifetime.counters cimport COUNT_FIXED, count_freed, count_made
from uringloop._core.lifetime.guard cimport URINGLOOP_DEBUG, ur_abstract, ur_only_core_makes


@cython.no_gc_clear  # __dealloc__ needs the engine
cdef class FixedMemory:
    def __cinit__(self):
        self.number = -1
        if URINGLOOP_DEBUG:
            count_made(COUNT_FIXED)

    def __dealloc__(self):
        """Runs in any thread; no operation in the kernel uses the memory any more."""
        if self.number >= 0:
            self.engine.unpin(self.number)
        if self.data is not NULL:
            munmap(self.data, self.length)
        if URINGLOOP_DEBUG:
            count_freed(COUNT_FIXED)

    def __repr__(self):
        return f"<FixedMemory {self.length} bytes, {'registered' if self.registered else 'not registered'}>"

    @property
    def registered(self):
        return self.place_in(self.engine) >= 0

    cdef int place_in(self, Engine engine) noexcept:
        """The number by which entries of that engine name the memory, or -1: to them it is ordinary memory."""
        return self.number if engine is self.engine and self.number >= 0 and engine.has_pinned(self.number) else -1


cdef FixedMemory make_fixed_memory(Engine engine, size_t length, int *err):
    """Make zeroed memory. Sets `err` to -errno if it could not be allocated or pinned."""
    cdef FixedMemory memory = FixedMemory.__new__(FixedMemory)
    cdef void *area = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
    if area == MAP_FAILED:
        err[0] = -ENOMEM
        return memory
    memory.engine = engine
    memory.data = <char *> area
    memory.length = length
    err[0] = engine.pin(area, length, &memory.number)
    return memory


@cython.no_gc_clear
cdef class FixedBuffer:
    def __cinit__(self):
        if URINGLOOP_DEBUG:
            count_made(COUNT_FIXED)

    def __dealloc__(self):
        if URINGLOOP_DEBUG:
            count_freed(COUNT_FIXED)

    def __getbuffer__(self, Py_buffer *view, int flags):
        PyBuffer_FillInfo(view, self, self.data, self.size, False, flags)

    def __repr__(self):
        return f"<{type(self).__name__} of {self.size} bytes in {self.memory!r}>"


ur_only_core_makes(FixedMemory)
ur_abstract(FixedBuffer)
