"""python-liburing, or an ImportError that names the remedy: the extra, or a build that this processor can run."""

from uringloop.ops.processor import check

check()
try:
    import liburing as liburing
except ImportError as error:
    raise ImportError(
        "uringloop.ops needs python-liburing, for Linux 6.14 or later on x86-64: "
        "pip install 'uringloop-asyncio[liburing]'"
    ) from error
