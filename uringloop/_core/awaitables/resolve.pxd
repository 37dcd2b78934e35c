from uringloop._core.awaitables.future_op cimport FutureOp


cdef class Resolved(FutureOp):
    cdef object outcome       # what it returns
    cdef object call          # ... or what to call for that when it is awaited
    cdef tuple arguments
