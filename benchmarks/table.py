"""The table on the terminal: plain text, one row of two lines (ratio with spread, raw median), losses
marked.
"""

from __future__ import annotations

from benchmarks.candidate import CONTROL
from benchmarks.result import Results
from benchmarks.row import Metric, Row
from benchmarks.units import figure, ratio_text

TITLE_WIDTH = 46
CELL_WIDTH = 17
LIMIT = "c-uring"


def groups_of(results: Results) -> dict[str, list[Row]]:
    """Group -> its rows that have samples."""
    groups: dict[str, list[Row]] = {}
    for row in results.rows:
        if results.ran(row):
            groups.setdefault(row.group, []).append(row)
    return groups


def columns_of(results: Results, rows: list[Row]) -> list[str]:
    present = {name for row in rows for name in results.ran(row)}
    return [candidate.name for candidate in results.candidates if candidate.name in present]


def ratio_cell(results: Results, row: Row, metric: Metric, candidate: str, base: str = CONTROL) -> str:
    cell = results.cell(row, metric, candidate, base)
    if cell is None:
        return "-"
    if cell.error:
        return "0 (failed)"
    if cell.ratio is None:
        return figure(cell.raw, metric.unit)
    spread = f" ±{cell.spread * 100:.0f}%" if cell.rounds > 1 and candidate != base else ""
    return ratio_text(cell.ratio) + spread


def raw_cell(results: Results, row: Row, metric: Metric, candidate: str) -> str:
    cell = results.cell(row, metric, candidate)
    if cell is None or cell.error or cell.ratio is None:
        return ""
    return figure(cell.raw, metric.unit)


def verdict_text(results: Results, row: Row, metric: Metric) -> str:
    verdict = results.verdict(row, metric)
    if verdict is None:
        return ""
    note = ", unsteady" if metric is row.metrics[0] and results.unsteady(row) else ""
    if verdict.even:
        return f"even: {verdict.ratio:.3f} of {verdict.peer}{note}"
    if verdict.lost:
        return f"LOSS: {verdict.ratio:.3f} of {verdict.peer}{note}"
    return f"{verdict.ratio:.2f} x {verdict.peer}{note}"


def table(results: Results, all_metrics: bool = False) -> str:
    """The whole report; with `all_metrics` every metric of a row has its own lines, else the first one."""
    lines = []
    for group, rows in groups_of(results).items():
        columns = columns_of(results, rows)
        head = "".join(name.rjust(CELL_WIDTH) for name in columns)
        lines += ["", group.ljust(TITLE_WIDTH) + head + "   against the best peer"]
        for row in rows:
            for metric in shown_metrics(row, all_metrics):
                lines += row_lines(results, row, metric, columns)
    lines += limit_table(results)
    lines += notes(results)
    return "\n".join(lines)


def limit_rows(results: Results) -> list[Row]:
    """The rows in which the bare C server on io_uring ran too, compared by processor time."""
    return [r for r in results.rows if r.metrics[0].name == "cpu" and LIMIT in results.ran(r)]


def limit_table(results: Results) -> list[str]:
    """The same rows against the physical limit: its processor time per message over that of each loop."""
    rows = limit_rows(results)
    if not rows:
        return []
    columns = columns_of(results, rows)
    head = "".join(name.rjust(CELL_WIDTH) for name in columns)
    lines = ["", "fraction of bare C io_uring, CPU per message".ljust(TITLE_WIDTH) + head]
    for row in rows:
        cells = "".join(limit_cell(results, row, name).rjust(CELL_WIDTH) for name in columns)
        lines.append(row.title[:TITLE_WIDTH].ljust(TITLE_WIDTH) + cells)
    return lines


def limit_cell(results: Results, row: Row, candidate: str) -> str:
    cell = results.cell(row, row.metrics[0], candidate, base=LIMIT)
    if cell is None or cell.ratio is None:
        return "-"
    return f"{cell.ratio:.2f} ±{cell.spread * 100:.0f}%" if cell.rounds > 1 else f"{cell.ratio:.2f}"


def shown_metrics(row: Row, all_metrics: bool) -> list[Metric]:
    """The first metric of a row, and the plain facts that belong to it."""
    return [
        metric
        for metric in row.metrics
        if all_metrics or metric is row.metrics[0] or not metric.compared or row.group == "diagnostics"
    ]


def row_lines(results: Results, row: Row, metric: Metric, columns: list[str]) -> list[str]:
    title = row.title if metric is row.metrics[0] else f"  {metric.name}"
    ratios = "".join(ratio_cell(results, row, metric, name).rjust(CELL_WIDTH) for name in columns)
    lines = [title[:TITLE_WIDTH].ljust(TITLE_WIDTH) + ratios + "   " + verdict_text(results, row, metric)]
    raws = [raw_cell(results, row, metric, name) for name in columns]
    if any(raws):
        lines.append("".ljust(TITLE_WIDTH) + "".join(text.rjust(CELL_WIDTH) for text in raws))
    return [line.rstrip() for line in lines]


def notes(results: Results) -> list[str]:
    """Why cells are 0 and rows are missing, and which failures a second try did not repeat."""
    lines = []
    for row in results.rows:
        for name in results.ran(row):
            error = results.error(row, name)
            if error:
                lines.append(f"failed: {name} in {row.name}: {error}")
    lines += [f"skipped: {name}: {reason}" for name, reason in results.skipped.items()]
    lines += [f"failed once: {s.candidate} in {s.row}: {s.error}" for s in results.retried]
    return ["", *lines] if lines else []
