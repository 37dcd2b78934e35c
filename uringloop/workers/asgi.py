"""ASGIWorker: gunicorn's own ASGI worker, on uringloop."""

from __future__ import annotations

import asyncio

from gunicorn.workers.gasgi import ASGIWorker as GunicornWorker

from uringloop.loop import EventLoop, new_event_loop


class ASGIWorker(GunicornWorker):
    loop: EventLoop

    def _setup_event_loop(self) -> None:
        self.loop = new_event_loop()
        asyncio.set_event_loop(self.loop)
