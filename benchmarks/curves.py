"""The curves of a run: the cost of one operation as a number grows, for example of connections or timers.

One small chart per family: rows whose names differ only in the number at their end. Written directly as SVG. The
horizontal axis is logarithmic, the vertical one starts at zero, so that a flat cost looks flat.
"""

from __future__ import annotations

import math
import re
from html import escape

from benchmarks.candidate import OURS
from benchmarks.picture import STYLE, colour_of, legend
from benchmarks.result import Results
from benchmarks.row import Row
from benchmarks.units import figure

WIDTH, HEIGHT, LEFT, BOTTOM, COLUMNS = 330, 220, 60, 40, 3
CURVE_GROUPS = ("scale", "growth")


def families(results: Results) -> dict[str, list[tuple[int, Row]]]:
    """Name without its number -> (number, row), for those with at least two points."""
    found: dict[str, list[tuple[int, Row]]] = {}
    for row in results.rows:
        match = re.fullmatch(r"(.*?)-c?(\d+)", row.name)
        if match and row.group in CURVE_GROUPS and row.metrics[0].compared and results.ran(row):
            found.setdefault(match[1], []).append((int(match[2]), row))
    return {
        name: sorted(points, key=lambda point: point[0]) for name, points in found.items() if len(points) > 1
    }


def curves(results: Results) -> str:
    charts = list(families(results).values())
    rows = max(1, math.ceil(len(charts) / COLUMNS))
    width, height = COLUMNS * WIDTH, rows * HEIGHT + 40
    parts = [f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {width} {height}' {STYLE}>"]
    parts.append(f"<rect width='{width}' height='{height}' fill='white'/>")
    parts += legend([candidate.name for candidate in results.candidates])
    for index, points in enumerate(charts):
        left, top = index % COLUMNS * WIDTH, 40 + index // COLUMNS * HEIGHT
        parts += [f"<g transform='translate({left},{top})'>", *chart(results, points), "</g>"]
    return "\n".join([*parts, "</svg>"]) + "\n"


def chart(results: Results, points: list[tuple[int, Row]]) -> list[str]:
    metric = points[0][1].metrics[0]
    lines: dict[str, list[tuple[int, float]]] = {}
    for number, row in points:
        for name in results.ran(row):
            cell = results.cell(row, metric, name)
            if cell is not None and not cell.error and cell.raw > 0:
                lines.setdefault(name, []).append((number, cell.raw))
    highest = max((raw for line in lines.values() for _number, raw in line), default=1.0)
    first, last = math.log10(points[0][0]), math.log10(points[-1][0])

    def x(number: int) -> float:
        return LEFT + (math.log10(number) - first) / max(last - first, 1e-9) * (WIDTH - LEFT - 20)

    def y(value: float) -> float:
        return HEIGHT - BOTTOM - value / highest * (HEIGHT - BOTTOM - 24)

    parts = [f"<text x='{LEFT}' y='14' font-weight='bold'>{escape(family_title(points[0][1]))}</text>"]
    parts.append(f"<path d='M{LEFT} 20 V{HEIGHT - BOTTOM} H{WIDTH - 20}' fill='none' stroke='#999'/>")
    parts.append(f"<text x='{LEFT - 4}' y='28' text-anchor='end'>{figure(highest, metric.unit)}</text>")
    parts.append(f"<text x='{LEFT - 4}' y='{HEIGHT - BOTTOM}' text-anchor='end'>0</text>")
    for number, _row in points:
        parts.append(
            f"<text x='{x(number):.0f}' y='{HEIGHT - BOTTOM + 14}' text-anchor='middle'>{number:,}</text>"
        )
    for name, line in lines.items():
        way = " ".join(f"{x(number):.1f},{y(raw):.1f}" for number, raw in line)
        stroke = 3 if name == OURS else 1.5
        parts.append(
            f"<polyline points='{way}' fill='none' stroke='{colour_of(name)}' stroke-width='{stroke}'/>"
        )
    return parts


def family_title(row: Row) -> str:
    """The title of its first row without the number."""
    return re.sub(r"\s*\b[\d,]+\s+(?=conn|timers|more|ready|idle)|\s[\d,]+(?=, per)", " ", row.title)
