"""UvicornWorker: gunicorn's processes, uvicorn in each of them, on uringloop."""

from __future__ import annotations

from typing import Any, ClassVar

import uvicorn_worker


class UvicornWorker(uvicorn_worker.UvicornWorker):
    CONFIG_KWARGS: ClassVar[dict[str, Any]] = {"loop": "uringloop:new_event_loop", "http": "auto"}
