from uringloop._core.awaitables.coroutine cimport Coroutine


cdef class Reading(Coroutine):
    # Only the loop's thread uses these fields.
    cdef Reader reader
    cdef object stream         # the StreamReader
    cdef bytes chunk           # the result, which the feeder has handed over; the task returns it when it runs
    cdef Py_ssize_t wanted
    cdef bint exactly

    # With the StreamReader's attributes:
    cdef object step(self, dict attributes)
    cdef object take(self, dict attributes, object buffer, Py_ssize_t size)
    cdef object suspend(self, dict attributes)
    cdef int stop_waiting(self, dict attributes) except -1
    cdef bint fits(self, Py_ssize_t length) noexcept


cdef class Reader:
    # An adopted StreamReader's additional state. Only the loop's thread uses it.
    cdef Reading waiting       # the suspended one that the stream's waiter wakes, or None


cdef bint adopt(object stream) except -1
cdef Reader reader_of(dict attributes)
cdef bint is_adopted(object stream) noexcept
