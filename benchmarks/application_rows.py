"""The rows that a user looks for first: web frameworks, WebSocket and a database's client, as applications use them."""

from __future__ import annotations

from benchmarks.candidate import EPOLL_ENGINE
from benchmarks.io_measure import measure_load, measure_web
from benchmarks.row import CPU, RATE, RATE_FIRST, Row

WEB = (
    ("uvicorn", "uvicorn (httptools), 13 bytes"),
    ("fastapi", "FastAPI under uvicorn, JSON"),
    ("aiohttp", "aiohttp, 13 bytes"),
)


def application_rows() -> list[Row]:
    web = [
        Row(
            kind,
            "applications",
            f"{title}, 50 conn., requests",
            RATE_FIRST,
            arguments={"kind": kind},
            measure=measure_web,
            extra_candidates=(EPOLL_ENGINE,),
        )
        for kind, title in WEB
    ]
    return [
        *web,
        Row(
            "websocket",
            "applications",
            "WebSocket echo 1k by websockets, 50 conn.",
            RATE_FIRST,
            arguments={
                "order": {"kind": "websocket"},
                "load": {"connections": 50, "websocket": True, "warm_up": 0.3},
            },
            measure=measure_load,
            seconds=0.5,
            extra_candidates=(EPOLL_ENGINE,),
        ),
        Row(
            "redis",
            "applications",
            "redis-py, 50 tasks, SET and GET of 100 bytes",
            (RATE, CPU),
            "stores:redis_round_trips",
            seconds=0.5,
            extra_candidates=(EPOLL_ENGINE,),
        ),
    ]
