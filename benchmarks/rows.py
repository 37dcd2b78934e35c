"""All rows of the benchmark, in the order in which they are shown."""

from __future__ import annotations

from fnmatch import fnmatchcase

from benchmarks.application_rows import application_rows
from benchmarks.call_rows import CALL_ROWS, DIAGNOSTICS_ROWS
from benchmarks.file_rows import file_rows
from benchmarks.io_rows import io_rows
from benchmarks.many_loops import served_rows
from benchmarks.row import Row
from benchmarks.starting import START_ROWS
from benchmarks.sync_rows import sync_rows
from benchmarks.turn_rows import TIMER_ROWS, TURN_ROWS, growth_rows


def all_rows() -> list[Row]:
    rows = [*application_rows(), *io_rows(), *file_rows(), *TURN_ROWS, *TIMER_ROWS, *CALL_ROWS]
    return [*rows, *sync_rows(), *served_rows(), *START_ROWS, *growth_rows(), *DIAGNOSTICS_ROWS]


def selected(patterns: str, quick: bool) -> list[Row]:
    """The rows whose name or group matches one of the comma separated patterns (a plain word matches
    inside the name).
    """
    rows = all_rows()
    if not patterns:
        return [row for row in rows if row.quick or not quick]
    exact = {row.group for row in rows} | {row.name for row in rows}
    return [
        row for row in rows if any(matches(row, part, part in exact) for part in patterns.split(",") if part)
    ]


def matches(row: Row, pattern: str, exact: bool) -> bool:
    if exact:
        return pattern in (row.name, row.group)
    return fnmatchcase(row.name, pattern if any(c in pattern for c in "*?[") else f"*{pattern}*")
