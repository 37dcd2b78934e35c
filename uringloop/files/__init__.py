"""Files without threads: `open_file` and what it returns, and `fs`, operations on paths."""

from uringloop.files import fs
from uringloop.files.opening import open_file

__all__ = ["fs", "open_file"]
