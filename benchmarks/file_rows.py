"""The rows with files: each loop with the files its users have, and every library on every loop."""

from __future__ import annotations

from typing import Any

from benchmarks.candidate import EPOLL_ENGINE
from benchmarks.row import RATE, Metric, Row

WORK: tuple[tuple[str, str, str, dict[str, Any]], ...] = (
    ("seek-read", "seek + read 4 KB, one task", "files:seek_read", {}),
    ("seek-read-16", "the same, 16 tasks", "files:seek_read", {"tasks": 16}),
    ("whole", "open + read 1 MB + close", "files:whole", {}),
    ("append", "append 1 KB, one task", "files:append", {}),
    ("lines", "lines of a text file", "files:lines", {}),
)
DIRECT = (
    RATE,
    Metric("depth", "queued", compared=False),
    Metric("fio", "/s", compared=False),
    Metric("fio_depth", "queued", compared=False),
    Metric("late", "ms", higher_is_better=False, compared=False),
    Metric("often_late", "ticks", higher_is_better=False, compared=False),
    Metric("bare_late", "ms", higher_is_better=False, compared=False),
    Metric("bare_often_late", "ticks", higher_is_better=False, compared=False),
)
LIBRARIES = ("aiofiles", "anyio", "ayafileio")


def file_rows() -> list[Row]:
    rows = []
    for name, title, work, arguments in WORK:
        rows.append(
            Row(
                f"file-{name}",
                "files",
                title,
                work=work,
                arguments=arguments,
                quick=name == "lines",
                extra_candidates=(EPOLL_ENGINE,),
            )
        )
        for library in LIBRARIES:
            rows.append(
                Row(
                    f"file-{name}-{library}",
                    "file-libraries",
                    f"{title}, {library}",
                    work=work,
                    arguments={**arguments, "library": library},
                )
            )
    for block in (4096, 65536):
        rows.append(
            Row(
                f"file-direct-{block >> 10}k",
                "file-direct",
                f"O_DIRECT, 32 tasks read {block >> 10} KB each",
                metrics=DIRECT,
                work="direct:direct",
                arguments={"block": block},
                seconds=2,
                timeout=60,
            )
        )
    return rows
