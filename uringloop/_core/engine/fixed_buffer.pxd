from uringloop._core.engine.engine cimport Engine


cdef class FixedMemory:
    cdef Engine engine        # of the ring that has it pinned
    cdef char *data
    cdef readonly size_t length
    cdef int number           # its place in the engine's table; -1: the engine has none
    cdef readonly long transfers   # entries that named the place; that loop's thread

    cdef int place_in(self, Engine engine) noexcept


cdef class FixedBuffer:
    # Never changes.
    cdef FixedMemory memory
    cdef char *data
    cdef readonly Py_ssize_t size


cdef FixedMemory make_fixed_memory(Engine engine, size_t length, int *err)
