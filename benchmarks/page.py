"""The page on performance and its pictures, made from the run that `make performance` has just measured, whose samples
stay on the machine: python -m benchmarks.page"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks.candidate import CANDIDATES
from benchmarks.curves import curves, families
from benchmarks.picture import picture
from benchmarks.report import as_markdown
from benchmarks.result import Results, Sample
from benchmarks.rows import all_rows

PROJECT = Path(__file__).resolve().parents[1]
RECORD = PROJECT / "benchmarks/results/latest.json"
TRIED = PROJECT / "benchmarks/tried.md"
PAGE = "docs/performance.md"
PICTURE = "docs/pictures/performance.svg"
CURVES = "docs/pictures/curves.svg"
# What the README shows: a server of each kind, and what every program does all the time.
PICTURED = (
    "tcp-protocol-1k-c50 tcp-streams-1k-c50 tcp-sock-1k-c50 sleep-0 call_later-fired threadsafe".split()
)

INTRODUCTION = """\
# Performance

This page and its pictures are made by `make performance` from one run of the benchmark, and show all rows of that run,
the losses too. How a figure is measured, and which ones need
care, is said in [the benchmark's own page](../benchmarks/README.md). Figures of another machine are other figures:
`make bench` prints yours.

![Bars: how many times better than asyncio each loop is, for a few rows](pictures/performance.svg)

## The run
"""


def load(path: Path) -> tuple[Results, dict[str, str]]:
    """What `--json` wrote; rows that are no longer there are left out."""
    document: dict[str, Any] = json.loads(path.read_text())
    samples = [Sample(**sample) for sample in document["samples"]]
    recorded = {row["name"] for row in document["rows"]}
    present = {sample.candidate for sample in samples}
    results = Results(
        [row for row in all_rows() if row.name in recorded],
        [candidate for candidate in CANDIDATES if candidate.name in present],
        samples,
        document["skipped"],
        [Sample(**sample) for sample in document["failed_once"]],
    )
    return results, document["machine"]


def busy(facts: dict[str, str]) -> str:
    """A warning, if the machine had other work: the benchmark itself keeps less than two processors busy."""
    load = float(facts["load at the end"].split()[0])
    if load < 3:
        return ""
    return f"\nThe machine had other work during this run, a load of {load:.0f}: mind the spreads.\n"


def pages(results: Results, facts: dict[str, str]) -> dict[str, str]:
    """The files, by their paths, and what is in them."""
    made = {PICTURE: picture(replace(results, rows=[r for r in results.rows if r.name in PICTURED]))}
    text = as_markdown(results, facts).replace("# Benchmark\n", INTRODUCTION + busy(facts), 1)
    if families(results):
        made[CURVES] = curves(results)
        text += "\n## As there is more of it\n\n![Curves: the cost of one operation](pictures/curves.svg)\n"
    made[PAGE] = text + "\n" + TRIED.read_text()
    return made


def main() -> None:
    for name, text in pages(*load(RECORD)).items():
        (PROJECT / name).write_text(text)
        print(f"made {name}")


if __name__ == "__main__":
    main()
