"""uringloop: an asyncio event loop for Linux whose only way to sleep is one io_uring."""

from uringloop.errors import UringUnavailable, UringUnavailableWarning
from uringloop.files import fs, open_file
from uringloop.loop import EventLoop, new_event_loop
from uringloop.policy import EventLoopPolicy, install
from uringloop.runner import run

__all__ = [
    "EventLoop",
    "EventLoopPolicy",
    "UringUnavailable",
    "UringUnavailableWarning",
    "fs",
    "install",
    "new_event_loop",
    "open_file",
    "run",
]


def __getattr__(name: str) -> object:
    if name == "ops":  # needs an extra, and is imported when first used
        import importlib

        return importlib.import_module("uringloop.ops")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
