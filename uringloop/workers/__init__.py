"""Worker classes for gunicorn, whose own options know no loops but asyncio and uvloop: `gunicorn -k
uringloop.workers.UvicornWorker app:app`. Each needs the package it is derived from."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from uringloop.workers.aiohttp import AiohttpWorker
    from uringloop.workers.asgi import ASGIWorker
    from uringloop.workers.uvicorn import UvicornWorker

__all__ = ["ASGIWorker", "AiohttpWorker", "UvicornWorker"]

# Imported when first used, because hardly any program has all of their packages.
_ROOMS = {
    "ASGIWorker": ("asgi", "gunicorn>=25"),
    "AiohttpWorker": ("aiohttp", "gunicorn aiohttp"),
    "UvicornWorker": ("uvicorn", "gunicorn uvicorn-worker"),
}


def __getattr__(name: str) -> object:
    if name not in _ROOMS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    room, packages = _ROOMS[name]
    try:
        found = getattr(importlib.import_module(f"uringloop.workers.{room}"), name)
    except ModuleNotFoundError as error:
        raise ImportError(f"{__name__}.{name} needs {error.name}: pip install {packages}") from error
    globals()[name] = found
    return found
