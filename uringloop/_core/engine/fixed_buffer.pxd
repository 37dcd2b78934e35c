from uringloop._core.engine.engine cimport Engine


cdef class FixedMemory:
    cdef Engine engine        # the engine whose ring has pinned it
    cdef char *data
    cdef readonly size_t length
    cdef int number           # its slot in the engine's table; -1: not pinned
    cdef readonly long transfers   # entries that used the slot; counted by that loop's thread

    cdef int place_in(self, Engine engine) noexcept


cdef class FixedBuffer:
    # These never change.
    cdef FixedMemory memory
    cdef char *data
    cdef readonly Py_ssize_t size


cdef FixedMemory make_fixed_memory(Engine engine, size_t length, int *err)
