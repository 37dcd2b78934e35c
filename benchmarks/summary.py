"""The figures that a user looks for first, as a short table: what an application gains, on either engine."""

from __future__ import annotations

from benchmarks.candidate import CONTROL, EPOLL_ENGINE, OURS
from benchmarks.result import Results
from benchmarks.row import Row
from benchmarks.units import figure, ratio_text

# The rows of the summary and of the picture.
HEADLINES = (
    "uvicorn",
    "fastapi",
    "aiohttp",
    "websocket",
    "redis",
    "tls-streams-1k",
    "tcp-protocol-1k-c50",
    "tcp-streams-1k-c50",
    "file-whole",
    "idle-10000",
)
COLUMNS = (OURS, EPOLL_ENGINE, "uvloop", CONTROL)


def headline_rows(results: Results) -> list[Row]:
    rows = {row.name: row for row in results.rows if results.ran(row)}
    return [rows[name] for name in HEADLINES if name in rows]


def summary(results: Results) -> list[str]:
    """Ten lines: our loop, the same on epoll, uvloop and asyncio, and the best of the others where that is another."""
    rows = headline_rows(results)
    if not rows:
        return []
    lines = [
        "| | " + " | ".join(COLUMNS) + " | the best other loop |",
        "|---|" + "---:|" * len(COLUMNS) + "---|",
    ]
    for row in rows:
        cells = " | ".join(_cell(results, row, name) for name in COLUMNS)
        lines.append(f"| {row.title} | {cells} | {_best(results, row)} |")
    return lines


def _cell(results: Results, row: Row, name: str) -> str:
    cell = results.cell(row, row.metrics[0], name)
    if cell is None:
        return "-"
    if cell.error:
        return "failed"
    raw = figure(cell.raw, row.metrics[0].unit)
    text = raw if name == CONTROL or cell.ratio is None else f"{raw}, {ratio_text(cell.ratio)}"
    return f"**{text}**" if name == OURS else text


def _best(results: Results, row: Row) -> str:
    verdict = results.verdict(row, row.metrics[0])
    if verdict is None:
        return ""
    cell = results.cell(row, row.metrics[0], verdict.peer)
    raw = "" if cell is None else f" {figure(cell.raw, row.metrics[0].unit)}"
    return f"{verdict.peer}{raw}" + (f", uringloop {verdict.ratio:.2f} of it" if verdict.lost else "")
