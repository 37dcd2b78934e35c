"""The rows of synchronisation and of many loops: each loop with what its users have, and every library on every
loop."""

from __future__ import annotations

from typing import Any

from benchmarks.row import RATE, Metric, Row

WORK: tuple[tuple[str, str, str, dict[str, Any]], ...] = (
    ("lock", "an uncontended lock", "sync_work:uncontended", {}),
    ("lock-10", "a contended lock, 10 tasks", "sync_work:contended", {}),
    ("lock-2x1", "a contended lock, 2 loops, 1 task each", "sync_work:across", {}),
    ("lock-2x10", "the same, 2 loops, 10 tasks each", "sync_work:across", {"tasks": 10}),
    ("lock-4x10", "the same, 4 loops, 10 tasks each", "sync_work:across", {"loops": 4, "tasks": 10}),
)
LIBRARIES = ("uringloop", "aiologic", "multiloop")


WORKERS = {
    "cpu": "Python",
    "switches": "sleep(0)",
    "echo": "echo",
    "streams": "echo by streams",
    "connections": "connect, echo, close by streams",
}


def sync_rows() -> list[Row]:
    rows = [
        Row(name, "sync", title, work=work, arguments=arguments, quick=name == "lock-10")
        for name, title, work, arguments in WORK
    ]
    rows.append(Row("jobs-100", "sync", "coroutines to another loop, 100 in flight", work="sync_work:jobs"))
    rows += [
        Row(
            f"workers-{work}",
            "workers",
            f"two loops in two threads against one: {title}",
            (Metric("speed-up", "x"), RATE),
            work="workers:speed_up",
            arguments={"work": work},
        )
        for work, title in WORKERS.items()
    ]
    for name, title, work, arguments in WORK:
        rows += [
            Row(
                f"{name}-{library}",
                "sync-libraries",
                f"{title}, {library}",
                work=work,
                arguments={"library": library, **arguments},
            )
            for library in LIBRARIES
        ]
    rows.append(
        Row(
            "jobs-100-multiloop",
            "sync-libraries",
            "coroutines to another loop, 100 in flight, multiloop's pool",
            work="sync_work:jobs",
            arguments={"library": "multiloop"},
        )
    )
    return rows
