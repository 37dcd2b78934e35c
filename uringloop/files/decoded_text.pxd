cimport cython
from cpython.unicode cimport PyUnicode_GET_LENGTH


@cython.final
cdef class DecodedText:
    # Only the loop's thread uses these fields.
    cdef object decoder            # None if the file is not readable
    cdef str line_end              # what ends a line: "\n", "\r", "\r\n", or "" for any of them
    # The text is decoded[at:]. The part from `mark` on comes from the last chunk.
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

    cdef inline Py_ssize_t left(self) noexcept:
        return PyUnicode_GET_LENGTH(self.decoded) - self.at

    cdef int feed(self, bytes chunk) except -1
    cdef int forget(self) except -1
    cdef int reset(self) except -1
    cdef Py_ssize_t line_length(self, Py_ssize_t looked) except -2
    cdef str take(self, Py_ssize_t length)
    cdef str take_with_rest(self, bytes data)
    cdef object tell(self, object position)
    cdef int begin_with(self, object flags) except -1
    cdef int replay(self, object cookie, bytes chunk) except -1
    cdef int put_in_front(self, str text) except -1
    cdef tuple state(self)
    cdef int restore(self, tuple state) except -1


cdef DecodedText make_decoded_text(object decoder, str line_end)
