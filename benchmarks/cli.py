"""The command line of the benchmark."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.candidate import CANDIDATES, CONTROL, Candidate, candidate_named
from benchmarks.curves import curves
from benchmarks.machine import machine_facts
from benchmarks.picture import picture
from benchmarks.report import as_json, as_markdown
from benchmarks.rounds import Run, available
from benchmarks.rows import all_rows, selected
from benchmarks.table import table


def parser(program: str) -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        prog=program, description="Compare asyncio event loops, interleaved, asyncio as control."
    )
    size = made.add_mutually_exclusive_group()
    size.add_argument(
        "--quick", action="store_true", help="a selection of rows in about a minute (the default)"
    )
    size.add_argument("--full", action="store_true", help="every row; takes an hour or more")
    made.add_argument(
        "--rows", default="", metavar="PATTERNS", help="rows or groups, comma separated, * and ? allowed"
    )
    made.add_argument(
        "--loops", default="", metavar="NAMES", help="candidates, comma separated (asyncio always runs)"
    )
    made.add_argument("--rounds", type=int, default=0, help="rounds (default: 3 quick, 5 full)")
    made.add_argument(
        "--seconds",
        type=float,
        default=0,
        help="length of a sample (default: what the row says, half of it if quick)",
    )
    made.add_argument(
        "--all-metrics", action="store_true", help="print every metric of a row, not only the first"
    )
    made.add_argument("--list", action="store_true", help="list the rows and stop")
    made.add_argument("--json", type=Path, metavar="FILE", help="write every sample and the machine's facts")
    made.add_argument("--markdown", type=Path, metavar="FILE", help="write the tables as Markdown")
    made.add_argument("--svg", type=Path, metavar="FILE", help="write the bar chart")
    made.add_argument(
        "--curves", type=Path, metavar="FILE", help="write the curves of the growth and scale rows"
    )
    return made


def candidates_of(names: str) -> tuple[list[Candidate], set[str]]:
    """The candidates to try, the control among them, and the names the user asked for."""
    if not names:
        return list(CANDIDATES), set()
    asked = [name.strip() for name in names.split(",") if name.strip()]
    wanted = {CONTROL, *asked}
    for name in asked:
        candidate_named(name)
    return [candidate for candidate in CANDIDATES if candidate.name in wanted], set(asked)


def main(arguments: Sequence[str] | None = None, program: str = "python -m benchmarks") -> int:
    options = parser(program).parse_args(arguments)
    quick = not options.full
    if options.list:
        for row in all_rows():
            print(f"{row.name:34} {row.group:12} {'quick' if row.quick else '     '}  {row.title}")
        return 0
    rows = selected(options.rows, quick)
    if not rows:
        print(f"no row matches {options.rows!r}; see --list", file=sys.stderr)
        return 2
    try:
        candidates, asked = candidates_of(options.loops)
    except KeyError as error:
        print(error.args[0], file=sys.stderr)
        return 2
    found, missing = available([c for c in candidates if any(row.takes(c, asked) for row in rows)])
    for name, reason in missing.items():
        print(f"not taking part: {name}: {reason}", file=sys.stderr)
    # nobody chose rows: a minute, most of which is the starting of servers and workers
    share = 0.5 if quick and not options.rows else 1.0
    results = Run(rows, found, asked, options.seconds, share).rounds(options.rounds or (3 if quick else 5))
    facts = machine_facts(found)
    print("\n".join(f"{name}: {value}" for name, value in facts.items()))
    print(table(results, options.all_metrics))
    if options.json is not None:
        options.json.write_text(as_json(results, facts))
    if options.markdown is not None:
        options.markdown.write_text(as_markdown(results, facts))
    if options.svg is not None:
        options.svg.write_text(picture(results))
    if options.curves is not None:
        options.curves.write_text(curves(results))
    return 0
