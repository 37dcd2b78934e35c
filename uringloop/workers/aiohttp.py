"""AiohttpWorker: gunicorn's processes, aiohttp in each of them, on uringloop."""

from __future__ import annotations

from aiohttp.worker import GunicornWebWorker

from uringloop.policy import install


class AiohttpWorker(GunicornWebWorker):
    def init_process(self) -> None:
        install()  # it asks asyncio for a loop, in the forked process
        super().init_process()
