"""The picture of a run: horizontal bars of one scale, how many times better than asyncio, written directly as SVG."""

from __future__ import annotations

from html import escape

from benchmarks.candidate import EPOLL_ENGINE, OURS
from benchmarks.result import Results, Verdict
from benchmarks.row import Row
from benchmarks.units import figure, ratio_text

COLOURS = {
    "asyncio": "#8c8c8c",
    "uvloop": "#4c78a8",
    "rloop": "#b279a2",
    "rsloop": "#9d755d",
    "zuvloop": "#72b7b2",
    OURS: "#e45756",
    EPOLL_ENGINE: "#ff9d98",
    "c-epoll": "#d0d0d0",
    "c-uring": "#bab0ac",
}
TITLE, BARS, LABEL, BAR, GAP, TOP, MAX_LINES = 290, 420, 280, 12, 14, 60, 12
LOSS = "#b00020"
STYLE = "font-family='system-ui, sans-serif' font-size='11'"


def picture(results: Results) -> str:
    """One group of bars per compared row; a bar's label is the ratio to asyncio and the raw median."""
    rows = [row for row in results.rows if row.metrics[0].compared and results.ran(row)]
    best = (
        max((ratio_of(results, row, name) for row in rows for name in results.ran(row)), default=0.0) or 1.0
    )
    parts: list[str] = []
    top = TOP
    for row in rows:
        parts += row_bars(results, row, top, BARS / best)
        top += BAR * len(results.ran(row)) + GAP
    parts = scale(best, top) + parts
    names = [c.name for c in results.candidates if any(c.name in results.ran(row) for row in rows)]
    width = TITLE + BARS + LABEL
    size = f"viewBox='0 0 {width} {top}' width='{width}' height='{top}'"
    head = f"<svg xmlns='http://www.w3.org/2000/svg' {size} {STYLE}>"
    return (
        "\n".join(
            [head, f"<rect width='{width}' height='{top}' fill='white'/>", *legend(names), *parts, "</svg>"]
        )
        + "\n"
    )


def ratio_of(results: Results, row: Row, name: str) -> float:
    cell = results.cell(row, row.metrics[0], name)
    return (cell.ratio or 0.0) if cell is not None else 0.0


def scale(best: float, bottom: int) -> list[str]:
    """A line at each whole multiple of asyncio, or at so many of them that their labels don't touch."""
    step = 1
    while best / step > MAX_LINES:
        step *= 2 if str(step)[0] in "15" else 5 / 2
    parts = []
    multiple = step
    while multiple <= best:
        x = TITLE + BARS * multiple / best
        parts.append(f"<line x1='{x:.1f}' y1='{TOP - 6}' x2='{x:.1f}' y2='{bottom - GAP}' stroke='#dddddd'/>")
        parts.append(
            f"<text x='{x:.1f}' y='{TOP - 9}' text-anchor='middle' fill='#666666'>{multiple:g}x</text>"
        )
        multiple += step
    return parts


def colour_of(name: str) -> str:
    return COLOURS.get(name, "#f2cf5b")


def legend(names: list[str]) -> list[str]:
    parts, left = [], 10
    for name in names:
        parts.append(f"<rect x='{left}' y='10' width='10' height='10' fill='{colour_of(name)}'/>")
        parts.append(f"<text x='{left + 14}' y='19'>{escape(name)}</text>")
        left += 30 + 7 * len(name)
    return parts


def row_bars(results: Results, row: Row, top: int, per_multiple: float) -> list[str]:
    metric = row.metrics[0]
    verdict = results.verdict(row, metric)
    cells = [(name, results.cell(row, metric, name)) for name in results.ran(row)]
    middle = top + BAR * len(cells) / 2 + 4
    parts = [f"<text x='{TITLE - 10}' y='{middle:.0f}' text-anchor='end'>{escape(row.title)}</text>"]
    for index, (name, cell) in enumerate(cells):
        y = top + BAR * index
        ratio = (cell.ratio or 0.0) if cell is not None else 0.0
        length = per_multiple * ratio
        colour = colour_of(name)
        parts.append(f"<rect x='{TITLE}' y='{y}' width='{length:.1f}' height='{BAR - 2}' fill='{colour}'/>")
        weight = " font-weight='bold'" if name == OURS else ""
        text = (
            "failed"
            if cell is None or cell.error
            else f"{ratio_text(ratio)}  {figure(cell.raw, metric.unit)}"
        )
        parts.append(
            f"<text x='{TITLE + length + 4:.1f}' y='{y + 9}' font-size='10'{weight}>"
            f"{escape(text)}{loss(verdict) if name == OURS else ''}</text>"
        )
    return parts


def loss(verdict: Verdict | None) -> str:
    """The text after uringloop's bar if another loop is ahead."""
    if verdict is None or not verdict.lost:
        return ""
    return f"<tspan fill='{LOSS}'>  LOSS: {verdict.ratio:.2f} of {escape(verdict.peer)}</tspan>"
