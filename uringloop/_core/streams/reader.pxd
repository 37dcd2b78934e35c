from uringloop._core.awaitables.coroutine cimport Coroutine


cdef class Reading(Coroutine):
    # The loop's thread only.
    cdef Reader reader
    cdef object stream         # the StreamReader
    cdef bytes chunk           # handed over by the stream's feeder: the result, once the task runs
    cdef Py_ssize_t wanted
    cdef bint exactly

    # With the StreamReader's attributes:
    cdef object step(self, dict attributes)
    cdef object take(self, dict attributes, object buffer, Py_ssize_t size)
    cdef object suspend(self, dict attributes)
    cdef int stop_waiting(self, dict attributes) except -1
    cdef bint fits(self, Py_ssize_t length) noexcept


cdef class Reader:
    # What an adopted StreamReader carries. The loop's thread only.
    cdef Reading waiting       # suspended, and to be woken by the stream's waiter; else None


cdef bint adopt(object stream) except -1
cdef Reader reader_of(dict attributes)
cdef bint is_adopted(object stream) noexcept
