from uringloop._core.awaitables.future_op cimport FutureOp


cdef class Resolved(FutureOp):
    cdef object outcome       # its result
    cdef object call          # ... or the function that returns the result, called when it is awaited
    cdef tuple arguments
