"""What the applications' checks share."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

_INJECT = Path(__file__).resolve().parent.parent / "inject"


def child_environment() -> dict[str, str]:
    """For programs we start: their Python hands out the loop under test too."""
    return {**os.environ, "PYTHONPATH": str(_INJECT)}


def loop_kind() -> str:
    """The running loop's type, as a name that can be compared with another process's."""
    kind = type(asyncio.get_running_loop())
    return f"{kind.__module__}.{kind.__qualname__}"


def free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])


@contextlib.asynccontextmanager
async def uvicorn_serving(app: Any, **options: Any) -> AsyncIterator[int]:
    """An ASGI application under uvicorn, in the running loop; its port."""
    import uvicorn

    sock = socket.create_server(("127.0.0.1", 0), backlog=512)
    server = uvicorn.Server(uvicorn.Config(app, log_level="warning", **options))
    task = asyncio.create_task(server.serve(sockets=[sock]))
    while not server.started:
        assert not task.done(), task.exception()
        await asyncio.sleep(0.01)
    try:
        yield int(sock.getsockname()[1])
    finally:
        server.should_exit = True
        await asyncio.wait_for(task, 15)
        sock.close()
