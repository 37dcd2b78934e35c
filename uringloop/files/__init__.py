"""Files without threads: `open_file` and what it returns, `fs`, operations on paths, and `FixedBuffers`, memory
that the kernel reads into and writes from without mapping it each time."""

from uringloop.files import fs
from uringloop.files.byte_file import ByteFile
from uringloop.files.fixed_buffers import FixedBuffers
from uringloop.files.opening import open_file
from uringloop.files.text_file import TextFile

__all__ = ["ByteFile", "FixedBuffers", "TextFile", "fs", "open_file"]
