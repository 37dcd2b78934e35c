"""What uringloop raises and warns of its own; everything else is asyncio's and Python's."""


class UringUnavailable(OSError):
    """io_uring was insisted on, and this machine refuses it. The message says why and what to do."""


class UringUnavailableWarning(RuntimeWarning):
    """io_uring is refused here: loops use epoll instead. Said once a process, with the cause and the remedy."""
