from uringloop.files.positional cimport Positional


cdef class ByteFile(Positional):
    cdef object begin_reading(self, int kind, object first)
    cdef object begin_otherwise(self, int kind, object first, object second)
    cdef object close_now(self)
