# TextFile: the text file that open_file returns. Owns the encoder, which is the standard library's own, and the
# DecodedText, which it feeds; its ByteFile handles the bytes. Reading a line that is already decoded costs only the
# search for its end.
import codecs
import io

cimport cython
from cpython.unicode cimport PyUnicode_AsUTF8String

from uringloop.files.async_file cimport (
    CALL_CLOSE, CALL_FLUSH, CALL_NEXT, CALL_READ, CALL_READ1, CALL_READLINE, CALL_READLINES, CALL_SEEK, CALL_TELL,
    CALL_TRUNCATE, CALL_WRITE, CALL_WRITELINES, AsyncFile,
)
from uringloop.files.byte_file cimport ByteFile
from uringloop.files.call cimport PENDING, Call
from uringloop.files.cookie import unpack
from uringloop.files.decoded_text cimport make_decoded_text

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
        self.write_end = newline if newline is not None and newline.startswith("\r") else None
        codec = codecs.lookup(encoding)
        self.plain = codec.name == "utf-8" and self.errors == "strict"
        decoder = None
        if buffer.cursor.can_read:
            decoder = codec.incrementaldecoder(self.errors)
            if newline is None or not newline:
                decoder = io.IncrementalNewlineDecoder(decoder, newline is None)
        self.text = make_decoded_text(decoder, "\n" if newline is None else newline)
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
        return getattr(self.text.decoder, "newlines", None)

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
        if self.text.decoder is None:
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

    cdef object refill_now(self, Py_ssize_t wanted):
        cdef object chunk = self.buffer.cursor.read_some_now(min(max(wanted, <Py_ssize_t> CHUNK), <Py_ssize_t> CHUNK_MOST))
        if chunk is PENDING:
            return PENDING
        self.text.feed(chunk)
        return None

    cdef object line_now(self, Py_ssize_t size):
        cdef Py_ssize_t length, looked = 0
        while True:
            length = self.text.line_length(looked)
            if length >= 0:
                break
            looked = self.text.left()
            if self.text.at_end or 0 <= size <= looked:
                length = looked
                self.text.at_end = False
                break
            if self.refill_now(looked) is PENDING:
                return PENDING
        if 0 <= size < length:
            length = size
        self.share.spend(0)
        return self.text.take(length)

    cdef object characters_now(self, Py_ssize_t size):
        cdef Py_ssize_t left
        while True:
            left = self.text.left()
            if left >= size or self.text.at_end:
                break
            if self.refill_now(size - left) is PENDING:
                return PENDING
            if not self.text.last:
                left = self.text.left()
                break
        if left < size:
            self.text.at_end = False
        self.share.spend(0)
        return self.text.take(min(left, size))

    cdef object rest_now(self):
        cdef object data = self.buffer.cursor.read_now(-1)
        if data is PENDING:
            return PENDING
        return self.text.take_with_rest(data)

    async def _wait_reading(self, int kind, first):
        cdef object outcome
        if kind == CALL_READ and (first is None or first < 0):
            self.reading_now(CALL_READ, 0)  # for its checks
            return self.text.take_with_rest(await self.buffer._in_turn(CALL_READ, -1, None))
        while True:
            outcome = self.reading_now(kind, first)
            if outcome is not PENDING:
                return outcome
            wanted = max(CHUNK, self.text.left(), first if kind == CALL_READ else 0)
            self.text.feed(await self.buffer._in_turn(CALL_READ1, min(wanted, CHUNK_MOST), None))

    async def _wait_lines(self, Py_ssize_t hint):
        lines = []
        total = 0
        position, state = self.buffer.cursor.position, self.text.state()
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
            self._put_back(lines, position, state)
            raise

    def _put_back(self, lines, position, state):
        """The call that took the lines was cancelled: make the next call read them again. A stream can't go back, so its
        lines are put in front of the decoded text."""
        if self.buffer.descriptor.stream:
            self.text.put_in_front("".join(lines))
            return
        self.text.restore(state)
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
        if self.text.decoder is not None and self.text.fed is not None:
            self.text.reset()

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
        return self.text.tell(self.buffer.cursor.position)

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
        if self.text.decoder is not None and (offset or cookie.skip):
            self.text.begin_with(cookie.flags)
            if cookie.skip:
                self.text.replay(cookie, await self.buffer._in_turn(CALL_READ, cookie.feed, None))
        return offset

    def _begin_at(self, position):
        """Continue at this byte position, with no decoded text."""
        self.text.reset()
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
