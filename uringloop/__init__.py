"""uringloop: an asyncio event loop for Linux whose only way to sleep is one io_uring."""

from uringloop.errors import UringUnavailable, UringUnavailableWarning
from uringloop.loop import EventLoop, new_event_loop

__all__ = ["EventLoop", "UringUnavailable", "UringUnavailableWarning", "new_event_loop"]
