# DecodedText: the text of one file that is decoded and that no call has taken yet. Owns the decoder, which is the
# standard library's own, and what tell() needs to know to decode the text again. Reads nothing: its file feeds it bytes.
cimport cython
from cpython.unicode cimport PyUnicode_FindChar, PyUnicode_GET_LENGTH, PyUnicode_Substring

from uringloop._core.lifetime.guard cimport ur_only_core_makes
from uringloop.files.cookie import pack, where


@cython.final
@cython.no_gc_clear  # the destructor of an object in the same cycle may still use it
cdef class DecodedText:
    cdef int feed(self, bytes chunk) except -1:
        """Decode the next chunk. An empty chunk means the end of the file, for now."""
        cdef str text
        cdef Py_ssize_t left = PyUnicode_GET_LENGTH(self.decoded) - self.at
        cdef bytes before
        before, flags = self.decoder.getstate()
        text = self.decoder.decode(chunk, not chunk)
        self.at_end = not chunk and not text  # at a truncated end, a codec may return text now and more the next time
        if left == 0:
            self.decoded = text
            self.mark = 0
        else:
            if self.at >= self.mark:
                self.old_flags, self.old_fed, self.old_skip = self.flags, self.fed, self.at - self.mark
            else:
                self.old_fed, self.old_skip = self.old_fed + self.last, self.old_skip + self.at
            self.decoded = self.decoded[self.at:] + text
            self.mark = left
        self.at = 0
        self.flags = flags
        self.fed = before + chunk if before else chunk
        self.last = chunk
        return 0

    cdef int forget(self) except -1:
        """Drop the text: the next bytes that are fed follow no others."""
        self.decoded = ""
        self.at = self.mark = 0
        self.at_end = False
        self.flags = self.fed = None
        return 0

    cdef int reset(self) except -1:
        """Drop the text, and let the decoder begin anew."""
        self.forget()
        if self.decoder is not None:
            self.decoder.reset()
        return 0

    cdef Py_ssize_t line_length(self, Py_ssize_t looked) except -2:
        """The length of the line at `at`, including its end; -1 if the end isn't decoded yet. No line ends before `looked`.
        """
        cdef Py_ssize_t length = PyUnicode_GET_LENGTH(self.decoded)
        cdef Py_ssize_t found, other
        cdef Py_ssize_t start = self.at + looked
        if self.line_end == "\n":
            found = PyUnicode_FindChar(self.decoded, c'\n', start, length, 1)
            return found + 1 - self.at if found >= 0 else -1
        if self.line_end != "":
            found = self.decoded.find(self.line_end, max(self.at, start - 1))
            return found + len(self.line_end) - self.at if found >= 0 else -1
        found = PyUnicode_FindChar(self.decoded, c'\n', start, length, 1)
        other = PyUnicode_FindChar(self.decoded, c'\r', start, length if found < 0 else found, 1)
        if other < 0:
            return found + 1 - self.at if found >= 0 else -1
        # The decoder holds back a trailing carriage return until it knows the next character.
        return other + (2 if other + 1 == found else 1) - self.at

    cdef str take(self, Py_ssize_t length):
        cdef str taken = PyUnicode_Substring(self.decoded, self.at, self.at + length)
        self.at += length
        return taken

    cdef str take_with_rest(self, bytes data):
        """Take all, and the text of `data`, which are all the bytes that are left in the file."""
        cdef str text = self.decoder.decode(data, True)
        if self.at < PyUnicode_GET_LENGTH(self.decoded):
            text = self.decoded[self.at:] + text
        self.forget()
        return text

    # Positions

    cdef object tell(self, object position):
        """The number for seek(). `position` is that of the byte after those fed."""
        if self.decoder is None or self.fed is None:
            return position
        if self.at >= self.mark:
            flags, fed, skip = self.flags, self.fed, self.at - self.mark
        else:
            position -= len(self.last)
            flags, fed, skip = self.old_flags, self.old_fed, self.old_skip + self.at
        return pack(where(self.decoder, position - len(fed), flags, fed, skip))

    cdef int begin_with(self, object flags) except -1:
        """Decode from here on with these flags of the decoder."""
        self.decoder.setstate((b"", flags))
        self.flags, self.fed, self.last = flags, b"", b""
        return 0

    cdef int replay(self, object cookie, bytes chunk) except -1:
        """Decode the bytes that the Cookie is about, and skip what was read of them."""
        self.flags, self.fed, self.last = cookie.flags, chunk, chunk
        self.decoded = self.decoder.decode(chunk, cookie.end)
        if len(self.decoded) < cookie.skip:
            raise OSError("can't restore logical file position")
        self.at = cookie.skip
        return 0

    # Cancelled calls

    cdef int put_in_front(self, str text) except -1:
        self.decoded = text + self.decoded[self.at:]
        self.at = 0
        return 0

    cdef tuple state(self):
        decoder_state = None if self.decoder is None else self.decoder.getstate()
        return (decoder_state, self.decoded, self.at, self.mark, self.at_end, self.flags, self.fed, self.last,
                self.old_flags, self.old_fed, self.old_skip)

    cdef int restore(self, tuple state) except -1:
        (decoder_state, self.decoded, self.at, self.mark, self.at_end, self.flags, self.fed, self.last, self.old_flags,
         self.old_fed, self.old_skip) = state
        if self.decoder is not None:
            self.decoder.setstate(decoder_state)
        return 0


cdef DecodedText make_decoded_text(object decoder, str line_end):
    cdef DecodedText text = DecodedText.__new__(DecodedText)
    text.decoder = decoder
    text.line_end = line_end
    text.decoded = ""
    return text


ur_only_core_makes(DecodedText)
