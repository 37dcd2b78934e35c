"""The rows of the scheduling group, of its growth curves, and of timers."""

from __future__ import annotations

from benchmarks.row import RATE, Metric, Row

COST = Metric("cost", "s", higher_is_better=False)
SIZES = (10, 1_000, 100_000)
CONNECTIONS = (
    10,
    1_000,
    9_000,
    100_000,
)  # 9,000 fits the usual limit of 20,000 files; 100,000 needs a raised one

TURN_ROWS: tuple[Row, ...] = (
    Row("call_soon", "turn", "100,000 call_soon, then run", work="turn:call_soon", quick=True),
    Row(
        "call_soon-2",
        "turn",
        "the same, 2 arguments",
        work="turn:call_soon",
        arguments={"arguments": 2},
    ),
    Row("call_soon-turns", "turn", "call_soon, 1,000 a turn", work="turn:call_soon_turns", quick=True),
    Row(
        "call_soon-turns-2",
        "turn",
        "the same, 2 arguments",
        work="turn:call_soon_turns",
        arguments={"arguments": 2},
    ),
    Row("chain", "turn", "chain of call_soon", work="turn:chain", quick=True),
    Row("sleep-0", "turn", "sleep(0)", work="turn:sleep_zero", quick=True),
    Row("gather", "turn", "gather of 100 sleep(0), per child", work="turn:gather", quick=True),
    Row(
        "gather-plain",
        "turn",
        "gather of 100 that return, per child",
        work="turn:gather",
        arguments={"suspend": False},
    ),
    Row("tasks-named", "turn", "create_task(name=) that returns", work="turn:named_tasks"),
    Row("future", "turn", "future set by call_soon, awaited", work="turn:future"),
    Row(
        "call_later-cancel",
        "turn",
        "10,000 call_later, then cancel",
        work="turn:call_later_cancel",
    ),
    Row(
        "call_later-cancel-now", "turn", "call_later + cancel, one by one", work="turn:call_later_cancel_now"
    ),
    Row("call_later-fired", "turn", "100,000 call_later(0), fired", work="turn:call_later_fired", quick=True),
    Row(
        "call_later-turns",
        "turn",
        "call_later(0), 1,000 a turn",
        work="turn:call_later_fired",
        arguments={"batch": 1_000},
    ),
    Row("threadsafe", "turn", "call_soon_threadsafe, own thread", work="turn:threadsafe_own", quick=True),
    Row("threadsafe-other", "turn", "call_soon_threadsafe, other thread", work="turn:threadsafe_other"),
    Row(
        "coroutine-threadsafe",
        "turn",
        "run_coroutine_threadsafe().result()",
        work="turn:coroutine_threadsafe",
        metrics=(RATE, Metric("cpu", "cores", higher_is_better=False, compared=False)),
    ),
    Row(
        "coroutine-threadsafe-one-core",
        "turn",
        "the same with both threads on one core",
        work="turn:coroutine_threadsafe",
        arguments={"one_core": True},
        metrics=(RATE, Metric("cpu", "cores", higher_is_better=False, compared=False)),
    ),
)


def growth_rows() -> list[Row]:
    """The cost per callback as there is more and more of everything."""
    rows = []
    for count in SIZES:
        rows += [
            Row(
                f"timers-{count}",
                "growth",
                f"a turn, {count:,} timers pending",
                (COST,),
                "growth:with_timers",
                {"pending": count},
            ),
            Row(
                f"fired-{count}",
                "growth",
                f"a timer fired, {count:,} more pending",
                (COST,),
                "turn:call_later_fired",
                {"pending": count, "batch": 1_000},
            ),
            Row(
                f"ready-{count}",
                "growth",
                f"a callback, {count:,} ready at once",
                (COST,),
                "growth:with_ready",
                {"ready": count},
            ),
            Row(
                f"sort-{count}",
                "growth",
                f"one of {count:,} timers made and fired together",
                (COST,),
                "turn:call_later_fired",
                {"batch": count},
            ),
        ]
    for count in CONNECTIONS:
        title = f"a turn, {count:,} connections open"
        work, arguments = "growth:with_connections", {"open_connections": count}
        once = 1 if count > 10_000 else 0
        rows.append(
            Row(
                f"connections-{count}",
                "growth",
                title,
                (COST,),
                work,
                arguments,
                timeout=120,
                max_rounds=once,
            )
        )
    return sorted(rows, key=lambda row: row.name.rsplit("-", 1)[0])


TIMER_ROWS: tuple[Row, ...] = (
    Row(
        "timer-truth",
        "timers",
        "10,000 sleeps of 0.2 to 5 ms: median late by",
        (
            Metric("median", "s", higher_is_better=False),
            Metric("p99", "s", higher_is_better=False),
            Metric("early", "", higher_is_better=False, compared=False),
            Metric("earliest", "s", higher_is_better=False, compared=False),
        ),
        "timers:truth",
        {},
        quick=True,
        max_rounds=1,
        timeout=60,
    ),
    Row(
        "idle",
        "timers",
        "an idle second: wakes",
        (
            Metric("wakes", "", higher_is_better=False, compared=False),
            Metric("cpu", "s", higher_is_better=False, compared=False),
        ),
        "timers:idle",
        max_rounds=1,
    ),
)
