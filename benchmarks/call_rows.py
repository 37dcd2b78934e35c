"""The rows of the loop's services."""

from __future__ import annotations

from benchmarks.row import Row

CALL_ROWS: tuple[Row, ...] = (
    Row(
        "subprocess", "calls", "a subprocess, started and waited for", work="calls:subprocesses", seconds=0.4
    ),
    Row(
        "subprocess-8",
        "calls",
        "subprocesses, 8 at once",
        work="calls:subprocesses",
        arguments={"at_once": 8},
        seconds=0.4,
    ),
    Row("getaddrinfo", "calls", "getaddrinfo of a literal", work="calls:getaddrinfo"),
    Row("executor", "calls", "run_in_executor, one by one", work="calls:executor"),
    Row(
        "executor-100",
        "calls",
        "run_in_executor, 100 at once",
        work="calls:executor",
        arguments={"at_once": 100},
    ),
)
