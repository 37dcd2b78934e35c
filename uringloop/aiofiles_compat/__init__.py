"""aiofiles' interface on uringloop's files: `from uringloop import aiofiles_compat as aiofiles`.

What is opened is the loop's own file; standard streams and spooled files go through an executor, as
aiofiles has them.
"""

from uringloop.aiofiles_compat import os, ospath, tempfile
from uringloop.aiofiles_compat.threadpool import (
    open,
    stderr,
    stderr_bytes,
    stdin,
    stdin_bytes,
    stdout,
    stdout_bytes,
)

__all__ = [
    "open",
    "os",
    "ospath",
    "stderr",
    "stderr_bytes",
    "stdin",
    "stdin_bytes",
    "stdout",
    "stdout_bytes",
    "tempfile",
]
