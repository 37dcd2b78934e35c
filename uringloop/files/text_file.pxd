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
    cdef str write_end             # what a written "\n" becomes, None: itself
    cdef object decoder            # None in a file that cannot be read
    cdef object encoder            # None: str.encode, which needs no state
    cdef bint plain                # UTF-8, strict
    # Decoded, and not read yet: decoded[at:]. From `mark` on it is what the last chunk gave.
    cdef str decoded
    cdef Py_ssize_t at
    cdef Py_ssize_t mark
    cdef bint at_end               # the last read said so, and nobody was told yet
    # How to decode it again, for tell(): the decoder's flags before, and the bytes it was given. None: not known.
    cdef object flags
    cdef bytes fed
    cdef bytes last                # of it, the last chunk
    cdef object old_flags          # the same for decoded[:mark], of which `old_skip` characters are gone
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
