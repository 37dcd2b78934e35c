from uringloop.files.async_file cimport AsyncFile
from uringloop.files.byte_file cimport ByteFile
from uringloop.files.call cimport Call
from uringloop.files.decoded_text cimport DecodedText


cdef class TextFile(AsyncFile):
    cdef readonly ByteFile buffer
    cdef readonly str mode
    cdef readonly str encoding
    cdef readonly str errors
    cdef readonly bint line_buffering
    cdef str write_end             # the replacement of a written "\n"; None: no replacement
    cdef DecodedText text          # read, but not taken by a call yet
    cdef object encoder            # None: str.encode, which needs no state
    cdef bint plain                # the encoding is UTF-8, with errors="strict"

    cdef object refill_now(self, Py_ssize_t wanted)
    cdef object line_now(self, Py_ssize_t size)
    cdef object characters_now(self, Py_ssize_t size)
    cdef object rest_now(self)
    cdef object reading_now(self, int kind, object first)
    cdef bytes encoded(self, str text)
    cdef object write_now(self, Call call, object text)
