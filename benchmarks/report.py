"""The files of a run: JSON with every sample, Markdown with the tables. The picture is `picture.py`."""

from __future__ import annotations

import json
from typing import Any

from benchmarks.result import Results
from benchmarks.table import (
    columns_of,
    groups_of,
    limit_cell,
    limit_rows,
    notes,
    ratio_cell,
    raw_cell,
    verdict_text,
)


def as_json(results: Results, facts: dict[str, str]) -> str:
    """Machine facts, every sample, and the cells as the tables show them."""
    cells: list[dict[str, Any]] = []
    for row in results.rows:
        for metric in row.metrics:
            for name in results.ran(row):
                cell = results.cell(row, metric, name)
                if cell is not None:
                    cells.append({"row": row.name, "metric": metric.name, "candidate": name, **vars(cell)})
    document = {
        "machine": facts,
        "rows": [
            {
                "name": row.name,
                "group": row.group,
                "title": row.title,
                "metrics": [vars(m) for m in row.metrics],
            }
            for row in results.rows
        ],
        "cells": cells,
        "samples": [vars(sample) for sample in results.samples],
        "failed_once": [vars(sample) for sample in results.retried],
        "skipped": results.skipped,
    }
    return json.dumps(document, separators=(",", ":")).replace('{"row"', '\n{"row"') + "\n"


def as_markdown(results: Results, facts: dict[str, str]) -> str:
    lines = ["# Benchmark", ""]
    lines += [
        f"- {name}: `{value}`" if name == "command" else f"- {name}: {value}" for name, value in facts.items()
    ]
    lines += [
        "",
        "Each cell is the median of the per-round ratios to asyncio (more is better, whatever the unit),",
        "± half their range, with the raw median below. In a row that is called unsteady, the ratio of the raw medians",
        "differs by more than 8 % from the median of the ratios even after three times as many rounds: trust neither.",
        "0 means that the loop failed, crashed or hung in this row.",
    ]
    for group, rows in groups_of(results).items():
        columns = columns_of(results, rows)
        lines += ["", f"## {group}", "", "| | " + " | ".join(columns) + " | against the best peer |"]
        lines.append("|---|" + "---:|" * len(columns) + "---|")
        for row in rows:
            for metric in row.metrics:
                cells = []
                for name in columns:
                    raw = raw_cell(results, row, metric, name)
                    cells.append(ratio_cell(results, row, metric, name) + (f"<br>{raw}" if raw else ""))
                title = row.title if metric is row.metrics[0] else f"{row.title}: {metric.name}"
                verdict = verdict_text(results, row, metric)
                verdict = f"**{verdict}**" if verdict.startswith("LOSS") else verdict
                lines.append(f"| {title} | " + " | ".join(cells) + f" | {verdict} |")
    lines += limit_section(results)
    lines += [f"- {note}" if note else "" for note in notes(results)]
    return "\n".join(lines) + "\n"


def limit_section(results: Results) -> list[str]:
    rows = limit_rows(results)
    if not rows:
        return []
    columns = columns_of(results, rows)
    lines = [
        "",
        "## CPU per message as a fraction of bare C io_uring",
        "",
        "| | " + " | ".join(columns) + " |",
    ]
    lines.append("|---|" + "---:|" * len(columns))
    for row in rows:
        cells = " | ".join(limit_cell(results, row, name) for name in columns)
        lines.append(f"| {row.title} | {cells} |")
    return lines
