from uringloop.files.async_file cimport AsyncFile
from uringloop.files.byte_file cimport ByteFile
from uringloop.files.call cimport Call


cdef class TextFile(AsyncFile):
    cdef readonly ByteFile buffer
    cdef readonly str mode
    cdef readonly str encoding
    cdef readonly str errors
    cdef readonly bint line_buffering
    cdef str line_end              # what ends a line: "\n", "\r", "\r\n", or "" for any of them
    cdef str write_end             # the replacement of a written "\n"; None: no replacement
    cdef object decoder            # None if the file is not readable
    cdef object encoder            # None: str.encode, which needs no state
    cdef bint plain                # the encoding is UTF-8, with errors="strict"
    # Decoded and not read yet: decoded[at:]. The part from `mark` on comes from the last chunk.
    cdef str decoded
    cdef Py_ssize_t at
    cdef Py_ssize_t mark
    cdef bint at_end               # the last read hit the end of the file, and no call has returned that yet
    # How to decode it again, for tell(): the decoder's flags before, and the bytes fed to it. None: not known.
    cdef object flags
    cdef bytes fed
    cdef bytes last                # the last chunk in `fed`
    cdef object old_flags          # the same for decoded[:mark], of which `old_skip` characters were read before
    cdef bytes old_fed
    cdef Py_ssize_t old_skip

    cdef int feed(self, bytes chunk) except -1
    cdef int forget_decoded(self) except -1
    cdef object refill_now(self, Py_ssize_t wanted)
    cdef object line_now(self, Py_ssize_t size)
    cdef Py_ssize_t line_length(self, Py_ssize_t looked) except -2
    cdef object characters_now(self, Py_ssize_t size)
    cdef object rest_now(self)
    cdef object reading_now(self, int kind, object first)
    cdef bytes encoded(self, str text)
    cdef object write_now(self, Call call, object text)
