"""The rows of the loop's services, and of looking into it."""

from __future__ import annotations

from benchmarks.candidate import CONTROL, OURS
from benchmarks.row import Metric, Row


def cost(name: str) -> Metric:
    return Metric(name, "s", higher_is_better=False)


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

DIAGNOSTICS_ROWS: tuple[Row, ...] = (
    Row(
        "looked-at",
        "diagnostics",
        "a turn, without and with an observer",
        (cost("cost"), cost("with an observer"), cost("afterwards")),
        "diagnostics:watched",
        only=(OURS,),
        seconds=0.5,
    ),
    Row(
        "debug-mode",
        "diagnostics",
        "a turn, debug mode off and on",
        (cost("cost"), cost("debug mode on"), cost("afterwards")),
        "diagnostics:debugged",
        only=(CONTROL, OURS),
    ),
)
