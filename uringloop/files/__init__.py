"""Files without threads: `open_file` and what it returns, `fs`, operations on paths, and `FixedBuffers`, memory
that the kernel reads into and writes from without mapping it each time."""

from uringloop.files import fs
from uringloop.files.fixed_buffers import FixedBuffers
from uringloop.files.opening import open_file

__all__ = ["FixedBuffers", "fs", "open_file"]
