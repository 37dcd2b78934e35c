"""Asynchronous files through io_uring: `open_file`, `fs` (operations on paths), and `FixedBuffers`, buffers that the
kernel maps once and not for each operation."""

from uringloop.files import fs
from uringloop.files.byte_file import ByteFile
from uringloop.files.fixed_buffers import BuffersClosed, FixedBuffers
from uringloop.files.opening import open_file
from uringloop.files.text_file import TextFile

__all__ = ["BuffersClosed", "ByteFile", "FixedBuffers", "TextFile", "fs", "open_file"]
