# TextFile: the text file that open_file returns. Owns the decoded text that is not read yet, and the decoder and encoder,
# which are the standard library's own; its ByteFile handles the bytes. Reading a line that is already decoded costs only
# the search for its end.
import codecs
import io

cimport cython
from cpython.unicode cimport PyUnicode_AsUTF8String, PyUnicode_FindChar, PyUnicode_GET_LENGTH, PyUnicode_Substring
from libc.stdint cimport int64_t

from uringloop.files.async_file cimport (
    CALL_CLOSE, CALL_FLUSH, CALL_NEXT, CALL_READ, CALL_READ1, CALL_READLINE, CALL_READLINES, CALL_SEEK, CALL_TELL,
    CALL_TRUNCATE, CALL_WRITE, CALL_WRITELINES, AsyncFile,
)
from uringloop.files.byte_file cimport ByteFile
from uringloop.files.call cimport PENDING, Call
from uringloop.files.cookie import Cookie, pack, unpack, where

from uringloop._core.lifetime.guard cimport ur_python_makes

cdef enum:
    CHUNK = 8192      # the bytes decoded at a time, as in io: the decoded part determines where a write after a read goes
    CHUNK_MOST = 1 << 20


@cython.no_gc_clear  # the destructor of an object in the same cycle may still use it
cdef class TextFile(AsyncFile):
    @staticmethod
    def check(encoding, errors, newline):
        """Check the arguments, before the file is opened."""
        for name, value in (("encoding", encoding), ("errors", errors), ("newline", newline)):
            if value is not None and not isinstance(value, str):
                raise TypeError(f"open_file() argument '{name}' must be str or None, not {type(value).__name__}")
        if newline is not None and newline not in ("", "\n", "\r", "\r\n"):
            raise ValueError(f"illegal newline value: {newline!r}")
        if encoding is not None and encoding != "locale":
            if "\0" in encoding:
                raise ValueError("embedded null character")
            if not getattr(codecs.lookup(encoding), "_is_text_encoding", True):
                raise LookupError(f"{encoding!r} is not a text encoding; use codecs.open() to handle arbitrary codecs")

    def __cinit__(self, ByteFile buffer, str mode, encoding, errors, newline, bint line_buffering):
        encoding = io.text_encoding(encoding, 4)
        if encoding == "locale":
            encoding = _locale_encoding()
        self.share.loop = buffer.share.loop
        self.buffer = buffer
        self.mode = mode
        self.encoding = encoding
        self.errors = errors or "strict"
        self.line_buffering = line_buffering
        self.line_end = "\n" if newline is None else newline
        self.write_end = newline if newline is not None and newline.startswith("\r") else None
        self.decoded = ""
        codec = codecs.lookup(encoding)
        self.plain = codec.name == "utf-8" and self.errors == "strict"
        if buffer.cursor.can_read:
            self.decoder = codec.incrementaldecoder(self.errors)
            if newline is None or not newline:
                self.decoder = io.IncrementalNewlineDecoder(self.decoder, newline is None)
        if buffer.cursor.can_write and codec.name not in ("utf-8", "ascii", "iso8859-1"):
            self.encoder = codec.incrementalencoder(self.errors)
            if buffer.descriptor.seekable and buffer.cursor.position:
                self.encoder.setstate(0)  # write no byte order mark in the middle of the file

    def __repr__(self):
        return f"<TextFile name={self.name!r} mode={self.mode!r} encoding={self.encoding!r}>"

    cdef int bind(self) except -1:
        AsyncFile.bind(self)
        self.buffer.bind()
        return 0

    # Attributes

    @property
    def name(self):
        return self.buffer.name

    @property
    def closed(self):
        return self.buffer.descriptor.closed()

    @property
    def newlines(self):
        """The kinds of line ends read so far, as io's `newlines` reports them."""
        return getattr(self.decoder, "newlines", None)

    def fileno(self):
        return self.buffer.fileno()

    def readable(self):
        return self.buffer.cursor.can_read

    def writable(self):
        return self.buffer.cursor.can_write

    def seekable(self):
        return self.buffer.descriptor.seekable

    # At once, or in turn

    cdef object begin(self, Call call):
        cdef int kind = call.kind
        cdef object outcome = PENDING
        if not self.busy() and not self.buffer.busy():
            if kind <= CALL_READLINES:
                outcome = self.reading_now(kind, call.first)
            elif kind == CALL_WRITE:
                outcome = self.write_now(call, call.first)
            elif kind == CALL_TELL:
                outcome = self._position()
            elif kind == CALL_FLUSH:
                self._check_open()
                outcome = None if self.buffer.cursor.flush_now() else PENDING
            elif kind == CALL_CLOSE:
                outcome = self.buffer.close_now()
        if outcome is PENDING and call.inner is None:
            call.inner = self.buffer._wait_close() if kind == CALL_CLOSE else self._in_turn(kind, call.first, call.second)
        return outcome

    cdef object reading_now(self, int kind, object first):
        cdef object line
        if self.buffer.descriptor.closed():
            raise ValueError("I/O operation on closed file.")
        if self.decoder is None:
            raise io.UnsupportedOperation("not readable")
        if kind == CALL_NEXT:
            line = self.line_now(-1)
            if line is not PENDING and not line:
                raise StopAsyncIteration
            return line
        if kind == CALL_READLINE:
            return self.line_now(-1 if first is None else first)
        if kind == CALL_READ:
            if first is None or first < 0:
                return self.rest_now()
            return self.characters_now(first)
        return PENDING

    async def _work(self, int kind, first, second):
        self._check_open()
        if kind < CALL_READLINES:
            return await self._wait_reading(kind, first)
        if kind == CALL_READLINES:
            return await self._wait_lines(-1 if first is None else first)
        if kind == CALL_WRITE:
            return await self._wait_write(first, second)
        if kind == CALL_WRITELINES:
            for line in first:
                await self._wait_write(line, None)
            return None
        if kind == CALL_TELL:
            return self._position()
        await self.buffer._in_turn(CALL_FLUSH, None, None)
        if kind == CALL_SEEK:
            return await self._wait_seek(first, second)
        if kind == CALL_TRUNCATE:
            return await self.buffer._in_turn(kind, self._position() if first is None else first, None)
        return await self.buffer._in_turn(kind, first, second)

    def _check_open(self):
        if self.buffer.descriptor.closed():
            raise ValueError("I/O operation on closed file.")

    # Reading

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

    cdef int forget_decoded(self) except -1:
        """Drop the decoded text: reading continues at the ByteFile's position."""
        self.decoded = ""
        self.at = self.mark = 0
        self.at_end = False
        self.flags = self.fed = None
        return 0

    cdef object refill_now(self, Py_ssize_t wanted):
        cdef object chunk = self.buffer.cursor.read_some_now(min(max(wanted, <Py_ssize_t> CHUNK), <Py_ssize_t> CHUNK_MOST))
        if chunk is PENDING:
            return PENDING
        self.feed(chunk)
        return None

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

    cdef object line_now(self, Py_ssize_t size):
        cdef Py_ssize_t length, looked = 0
        cdef str line
        while True:
            length = self.line_length(looked)
            if length >= 0:
                break
            looked = PyUnicode_GET_LENGTH(self.decoded) - self.at
            if self.at_end or 0 <= size <= looked:
                length = looked
                self.at_end = False
                break
            if self.refill_now(looked) is PENDING:
                return PENDING
        if 0 <= size < length:
            length = size
        self.share.spend(0)
        line = PyUnicode_Substring(self.decoded, self.at, self.at + length)
        self.at += length
        return line

    cdef object characters_now(self, Py_ssize_t size):
        cdef Py_ssize_t left
        cdef str text
        while True:
            left = PyUnicode_GET_LENGTH(self.decoded) - self.at
            if left >= size or self.at_end:
                break
            if self.refill_now(size - left) is PENDING:
                return PENDING
            if not self.last:
                left = PyUnicode_GET_LENGTH(self.decoded) - self.at
                break
        if left < size:
            self.at_end = False
        left = min(left, size)
        self.share.spend(0)
        text = PyUnicode_Substring(self.decoded, self.at, self.at + left)
        self.at += left
        return text

    cdef object rest_now(self):
        cdef object data = self.buffer.cursor.read_now(-1)
        if data is PENDING:
            return PENDING
        return self._decode_rest(data)

    def _decode_rest(self, bytes data):
        cdef str text = self.decoder.decode(data, True)
        if self.at < PyUnicode_GET_LENGTH(self.decoded):
            text = self.decoded[self.at:] + text
        self.forget_decoded()
        return text

    async def _wait_reading(self, int kind, first):
        cdef object outcome
        if kind == CALL_READ and (first is None or first < 0):
            self.reading_now(CALL_READ, 0)  # for its checks
            return self._decode_rest(await self.buffer._in_turn(CALL_READ, -1, None))
        while True:
            outcome = self.reading_now(kind, first)
            if outcome is not PENDING:
                return outcome
            wanted = max(CHUNK, PyUnicode_GET_LENGTH(self.decoded) - self.at, first if kind == CALL_READ else 0)
            self.feed(await self.buffer._in_turn(CALL_READ1, min(wanted, CHUNK_MOST), None))

    async def _wait_lines(self, Py_ssize_t hint):
        lines = []
        total = 0
        before = self._reading_state()
        try:
            while True:
                line = await self._wait_reading(CALL_READLINE, None)
                if not line:
                    return lines
                lines.append(line)
                total += len(line)
                if 0 < hint < total:
                    return lines
        except BaseException:
            self._put_back(lines, before)
            raise

    def _reading_state(self):
        state = None if self.decoder is None else self.decoder.getstate()
        return (self.buffer.cursor.position, state, self.decoded, self.at, self.mark, self.at_end, self.flags, self.fed,
                self.last, self.old_flags, self.old_fed, self.old_skip)

    def _put_back(self, lines, before):
        """The call that took the lines was cancelled: make the next call read them again. A stream can't go back, so its
        lines are put in front of the decoded text."""
        cdef int64_t position
        if self.buffer.descriptor.stream:
            self.decoded = "".join(lines) + self.decoded[self.at:]
            self.at = 0
            return
        (position, state, self.decoded, self.at, self.mark, self.at_end, self.flags, self.fed, self.last, self.old_flags,
         self.old_fed, self.old_skip) = before
        if self.decoder is not None:
            self.decoder.setstate(state)
        self.buffer.cursor.move_to(position)

    # Writing

    cdef bytes encoded(self, str text):
        if self.write_end is not None and "\n" in text:
            text = text.replace("\n", self.write_end)
        if self.plain:
            return PyUnicode_AsUTF8String(text)
        if self.encoder is not None:
            return self.encoder.encode(text)
        return text.encode(self.encoding, self.errors)

    cdef object write_now(self, Call call, object text):
        cdef bytes data
        cdef bint flush
        self._check_writing(text)
        data = self.encoded(text)
        flush = self.line_buffering and ("\n" in text or "\r" in text)
        self._forget_reading()
        if self.buffer.cursor.raw or self.buffer.cursor.write_now(data) is PENDING:
            call.inner = self._in_turn(CALL_WRITE, data, (len(text), flush))  # the tuple says that `data` is encoded
            return PENDING
        if flush and not self.buffer.cursor.flush_now():
            call.inner = self._in_turn(CALL_WRITE, b"", (len(text), True))
            return PENDING
        self.share.spend(0)
        return len(text)

    def _check_writing(self, text):
        self._check_open()
        if not self.buffer.cursor.can_write:
            raise io.UnsupportedOperation("not writable")
        if not isinstance(text, str):
            raise TypeError(f"write() argument must be str, not {type(text).__name__}")

    def _forget_reading(self):
        if self.decoder is not None and self.fed is not None:
            self.forget_decoded()
            self.decoder.reset()

    async def _wait_write(self, text, told):
        if told is None:
            self._check_writing(text)
            told = len(text), self.line_buffering and ("\n" in text or "\r" in text)
            text = self.encoded(text)
            self._forget_reading()
        if text:
            await self.buffer._in_turn(CALL_WRITE, text, None)
        if told[1]:
            await self.buffer._in_turn(CALL_FLUSH, None, None)
        return told[0]

    # Position

    def _position(self):
        """An opaque number for seek(), as io's: the byte position, if decoding can begin there."""
        self._check_open()
        if not self.buffer.descriptor.seekable:
            raise io.UnsupportedOperation("underlying stream is not seekable")
        end = self.buffer.cursor.position
        if self.decoder is None or self.fed is None:
            return end
        if self.at >= self.mark:
            flags, fed, skip = self.flags, self.fed, self.at - self.mark
        else:
            end -= len(self.last)
            flags, fed, skip = self.old_flags, self.old_fed, self.old_skip + self.at
        return pack(where(self.decoder, end - len(fed), flags, fed, skip))

    async def _wait_seek(self, offset, int whence):
        if not self.buffer.descriptor.seekable:
            raise io.UnsupportedOperation("underlying stream is not seekable")
        if whence not in (0, 1, 2):
            raise ValueError(f"invalid whence ({whence}, should be 0, 1 or 2)")
        if whence and offset:
            what = "cur" if whence == 1 else "end"
            raise io.UnsupportedOperation(f"can't do nonzero {what}-relative seeks")
        if whence == 1:
            offset = self._position()
        elif whence == 2:
            position = await self.buffer._in_turn(CALL_SEEK, 0, 2)
            self._begin_at(position)
            return position
        if offset < 0:
            raise ValueError(f"negative seek position {offset}")
        cookie = unpack(offset)
        await self.buffer._in_turn(CALL_SEEK, cookie.position, 0)
        self._begin_at(cookie.position)
        if self.decoder is not None and (offset or cookie.skip):
            self.decoder.setstate((b"", cookie.flags))
            self.flags, self.fed, self.last = cookie.flags, b"", b""
            if cookie.skip:
                chunk = await self.buffer._in_turn(CALL_READ, cookie.feed, None)
                self.flags, self.fed, self.last = cookie.flags, chunk, chunk
                self.decoded = self.decoder.decode(chunk, cookie.end)
                if len(self.decoded) < cookie.skip:
                    raise OSError("can't restore logical file position")
                self.at = cookie.skip
        return offset

    def _begin_at(self, position):
        """Continue at this byte position, with no decoded text."""
        self.forget_decoded()
        if self.decoder is not None:
            self.decoder.reset()
        if self.encoder is not None:
            if position:
                self.encoder.setstate(0)
            else:
                self.encoder.reset()


def _locale_encoding():
    import locale
    import sys

    return "utf-8" if sys.flags.utf8_mode else locale.getencoding()


ur_python_makes(TextFile)
