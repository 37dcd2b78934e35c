"""Makes the page on performance and its pictures from the run that `make performance` has just measured:
python -m benchmarks.page. The run itself, with every sample, stands beside the page."""

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
from benchmarks.summary import headline_rows, summary

PROJECT = Path(__file__).resolve().parents[1]
RECORD = PROJECT / "docs/performance.json"
TRIED = PROJECT / "benchmarks/tried.md"
PAGE = "docs/performance.md"
README, BEGIN, END = "README.md", "<!-- made by benchmarks/page.py -->", "<!-- until here -->"
PICTURE = "docs/pictures/performance.svg"
CURVES = "docs/pictures/curves.svg"

INTRODUCTION = """\
# Performance

Applications first. A cell has the median of the raw figures, and how many times better than asyncio the loop was in the
same rounds. `uringloop-epoll` is uringloop where io_uring is refused, as in most containers.

{summary}

![Bars: how many times better than asyncio each loop is, for these rows](pictures/performance.svg)

`make performance` makes this page and its pictures from one run of the benchmark, of which
[performance.json](performance.json) has every sample. The tables below show all rows of that run, including those in
which another loop wins. [The benchmark's own page](../benchmarks/README.md) explains how each figure is measured and
which ones need care. Another machine gives other figures: `make bench` measures yours.

## The run
"""
GROWTH = """
## Cost by number

The cost of one operation as the number of connections, timers or callbacks grows.

![Curves: the cost of one operation](pictures/curves.svg)
"""


def load(path: Path) -> tuple[Results, dict[str, str]]:
    """Read what `--json` wrote, without the rows that no longer exist."""
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
    """A warning if other processes used the machine: the benchmark itself keeps less than two processors busy."""
    load = float(facts["load at the end"].split()[0])
    if load < 3:
        return ""
    return f"\nOther processes used the machine during this run (load {load:.0f}), so look at the spreads.\n"


def pages(results: Results, facts: dict[str, str]) -> dict[str, str]:
    """The contents of the files, by path."""
    made = {PICTURE: picture(replace(results, rows=headline_rows(results)))}
    introduction = INTRODUCTION.format(summary="\n".join(summary(results)))
    text = as_markdown(results, facts).replace("# Benchmark\n", introduction + busy(facts), 1)
    if families(results):
        made[CURVES] = curves(results)
        text += GROWTH
    made[PAGE] = text + "\n" + TRIED.read_text()
    made[README] = in_readme("\n".join(summary(results)))
    return made


def in_readme(table: str) -> str:
    """The README, with the summary where its marks are."""
    before, begin, rest = (PROJECT / README).read_text().partition(BEGIN)
    _, end, after = rest.partition(END)
    return f"{before}{begin}\n\n{table}\n\n{end}{after}"


def main() -> None:
    for name, text in pages(*load(RECORD)).items():
        (PROJECT / name).write_text(text)
        print(f"made {name}")


if __name__ == "__main__":
    main()
