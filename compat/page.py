"""Makes docs/compatibility.md from the recorded runs of whole suites."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

from compat import loops
from compat import verdict as v
from compat.catalogue import SUITES, UNRUNNABLE
from compat.expectations import FOLDER
from compat.report import STORE
from compat.suite import CheckSuite

_INTRODUCTION = """\
# Compatibility

The results of other projects' test suites and programs. `make compat` runs them on uringloop, and as a control on
stock asyncio. `python -m compat --report docs/compatibility.md` makes this page from the recorded runs; nothing in
it is written by hand.

- **applicable**: tests that use the loop under test and that stock asyncio passes on the same machine. A test
  that never makes a loop through asyncio's public names proves nothing about a loop, and does not count.
- **internals**: tests of the stock loop's own private parts, listed below with the reasons. They run on stock
  asyncio only.
- A test that fails although stock asyncio passes it fails the run, unless `compat/expectations/` lists it with a
  reason; a listed test that passes fails the run too.
"""
_LEGEND = """\
A row counts the checks that stock asyncio passes. Y: all of them pass; P: some pass; N: none passes, because a
method or argument is missing; F: none passes for another reason; C: a check crashed the process; -: the Python of
that run does not have the feature. The checks are in `compat/behaviours/`.
"""
_PRIVATE = "Tests of the stock loop's private parts, which run on stock asyncio only."
_MISSING = ("NotImplementedError", "AttributeError", "TypeError")


def _runs() -> list[dict[str, Any]]:
    runs = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(STORE.glob("*.json"))]
    order = list(SUITES)
    known = [run for run in runs if run["suite"] in order]

    def key(run: dict[str, Any]) -> Any:
        version = [int(part) for part in run["python"].split(".")[:2]]
        return order.index(run["suite"]), version, run["free_threaded"], run["loop"], run["modes"]

    return sorted(known, key=key)


def _cell(text: object) -> str:
    return str(text).replace("|", "\\|")


def _table(head: list[str], rows: list[list[object]]) -> str:
    lines = ["| " + " | ".join(head) + " |", "|" + " --- |" * len(head)]
    lines += ["| " + " | ".join(_cell(cell) for cell in row) + " |" for row in rows]
    return "\n".join(lines) + "\n"


def _summary(runs: list[dict[str, Any]]) -> str:
    rows: list[list[object]] = []
    for run in runs:
        if run["loop"] == loops.STOCK:
            continue
        counts = run["counts"]
        mode = " ".join([run["loop"], *run["modes"]])
        python = run["python"] + ("t" if run["free_threaded"] else "")
        passed = f"{counts[v.PASSED]} of {run['applicable']}"
        rows.append([run["title"], python, mode, passed, counts[v.EXPECTED], counts[v.INTERNAL], run["date"]])
    head = ["suite", "Python", "loop", "passed of applicable", "expected failures", "internals", "day"]
    return "## Results\n\n" + _table(head, rows)


def _row_code(tests: list[dict[str, Any]]) -> str:
    """The letter of a row for one loop; checks that stock asyncio fails don't count."""
    counting = [test for test in tests if test["verdict"] not in (v.SKIPPED, v.CONTROL_FAILS)]
    if not counting:
        return "-"
    candidates = [test["candidate"] or {"status": "crash"} for test in counting]
    passed = sum(candidate["status"] == "pass" for candidate in candidates)
    if passed == len(candidates):
        return "Y"
    if any(candidate["status"] == "crash" for candidate in candidates):
        return "C"
    if passed:
        return "P"
    return "N" if all(any(each in c.get("brief", "") for each in _MISSING) for c in candidates) else "F"


def _behaviours(runs: list[dict[str, Any]]) -> str:
    suite = SUITES["behaviours"]
    assert isinstance(suite, CheckSuite)
    wanted = [run for run in runs if run["suite"] == "behaviours" and not run["modes"]]
    # the newest Python of each loop
    newest = {run["loop"]: run for run in wanted}
    if not newest:
        return ""
    rows_of: dict[str, list[str]] = {}
    for area in suite.areas:
        for function in suite.checks(area):
            rows_of.setdefault(function.about.row, []).append(f"{area}.{function.__name__}")
    order = [name for name in loops.NAMED if name in newest] + sorted(set(newest) - set(loops.NAMED))
    table: list[list[object]] = []
    for row, names in rows_of.items():
        cells = []
        for loop in order:
            tests = [newest[loop]["tests"][name] for name in names if name in newest[loop]["tests"]]
            cells.append(_row_code(tests))
        table.append([row, *cells])
    passed = [f"{newest[loop]['counts'][v.PASSED]} of {newest[loop]['applicable']}" for loop in order]
    table.append(["**checks passed, of those that stock asyncio passes**", *passed])
    head = ["row", *(f"{loop} ({newest[loop]['python']})" for loop in order)]
    return "## Behaviour, row by row\n\n" + _LEGEND + "\n" + _table(head, table)


def _known(kind: str, title: str, introduction: str) -> str:
    lines: list[list[object]] = []
    for path in sorted(FOLDER.glob("*.toml")):
        for table in tomllib.loads(path.read_text(encoding="utf-8")).get(kind, []):
            where = ", ".join(
                filter(None, [table.get("python", ""), *table.get("loops", []), *table.get("when", [])])
            )
            tests = "<br>".join(f"`{test}`" for test in table["tests"])
            lines.append([path.stem, tests, where or "always", table["reason"]])
    if not lines:
        return f"## {title}\n\nNone.\n"
    return f"## {title}\n\n{introduction}\n\n" + _table(["suite", "tests", "where", "reason"], lines)


def _failures(runs: list[dict[str, Any]]) -> str:
    """The unexpected failures in the recorded runs."""
    rows: list[list[object]] = []
    for run in runs:
        if not run["loop"].startswith("uringloop"):
            continue
        for name, test in run["tests"].items():
            if test["verdict"] in v.BAD:
                said = (test["candidate"] or {}).get("brief", test["verdict"])
                rows.append(
                    [run["suite"], run["python"], " ".join([run["loop"], *run["modes"]]), f"`{name}`", said]
                )
    if not rows:
        return "## Unexpected failures\n\nNone.\n"
    return "## Unexpected failures\n\n" + _table(["suite", "Python", "loop", "test", "error"], rows)


def _versions() -> str:
    rows: list[list[object]] = [
        [
            name,
            suite.title,
            " ".join(filter(None, [suite.version, *suite.requirements])) or "of the running Python",
        ]
        for name, suite in SUITES.items()
    ]
    unrunnable: list[list[object]] = [[name, reason] for name, reason in UNRUNNABLE.items()]
    return (
        "## Suites and their pins\n\n"
        + _table(["name", "suite", "versions"], rows)
        + "\nSuites that are not run:\n\n"
        + _table(["suite", "reason"], unrunnable)
    )


def write(path: Path) -> None:
    """The whole page."""
    runs = _runs()
    parts = [
        _INTRODUCTION,
        _summary(runs),
        _failures(runs),
        _known("expected", "Expected failures", "If one of these tests passes, the run fails."),
        _behaviours(runs),
        _known("internal", "Internals", _PRIVATE),
        _versions(),
    ]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(filter(None, parts)), encoding="utf-8")
