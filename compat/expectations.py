"""Reads expectations/*.toml: what is known to differ on a loop, on which Python, and why.

    [[internal]]            # a test of the stock loop's own inside: not run on the candidate
    tests = ["test_selector_events.*"]
    reason = "..."

    [[expected]]            # a test that fails on the candidate, and has to, as long as the entry is here
    tests = ["test_x.Y.test_z"]
    loops = ["uringloop*"]  # which loops it is about, by name (default: every loop of ours)
    python = ">=3.12,<3.14" # which versions (default: all)
    when = ["debug"]        # only in these modes: debug, tiny (default: in every mode)
    reason = "..."

Test names are shell patterns. An entry that matches no test of a whole run is an error, so the files can't go
stale.
"""

from __future__ import annotations

import fnmatch
import operator
import re
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parent / "expectations"
_KEYS = {"tests", "reason", "loops", "python", "when"}
_COMPARE = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
}
_LAZY_REASON = re.compile(r"\bflaky|\bsometimes\b|\brandomly\b", re.IGNORECASE)


@dataclass(frozen=True)
class Entry:
    """One table of an expectation file."""

    kind: str  # internal or expected
    tests: tuple[str, ...]
    reason: str

    def match(self, test: str) -> str | None:
        return next((pattern for pattern in self.tests if fnmatch.fnmatchcase(test, pattern)), None)


class Expectations:
    """The entries of one suite that apply to this interpreter, this loop and this mode."""

    def __init__(self, entries: list[Entry]) -> None:
        self.entries = entries
        self.used: set[str] = set()

    def find(self, kind: str, test: str) -> Entry | None:
        for entry in self.entries:
            if entry.kind == kind and (pattern := entry.match(test)) is not None:
                self.used.add(pattern)
                return entry
        return None

    def internal_patterns(self) -> tuple[str, ...]:
        return tuple(pattern for entry in self.entries if entry.kind == "internal" for pattern in entry.tests)

    def stale(self) -> list[str]:
        # by entry and not by pattern: point releases of Python bring and drop single tests
        return [", ".join(entry.tests) for entry in self.entries if not self.used & set(entry.tests)]


def python_matches(condition: str, version: tuple[int, ...] | None = None) -> bool:
    """Whether a version condition such as `>=3.12,<3.14` or `==3.13.0` holds for this interpreter."""
    running = tuple(sys.version_info[:3]) if version is None else version
    for term in filter(None, (part.strip() for part in condition.split(","))):
        found = re.fullmatch(r"(<=|>=|==|!=|<|>)\s*(\d+(?:\.\d+)*)", term)
        if found is None:
            raise ValueError(f"not a version condition: {term!r}")
        wanted = tuple(int(number) for number in found[2].split("."))
        if not _COMPARE[found[1]](running[: len(wanted)], wanted):
            return False
    return True


def _applies(table: dict[str, Any], kind: str, loop: str, modes: set[str]) -> bool:
    # internals are about the suite, so they hold for every replacement loop; failures are about ours
    default = ["*"] if kind == "internal" else ["uringloop*"]
    if not any(fnmatch.fnmatchcase(loop, pattern) for pattern in table.get("loops", default)):
        return False
    return python_matches(table.get("python", "")) and (
        not table.get("when") or bool(modes & set(table["when"]))
    )


def load(suite: str, loop: str, modes: set[str]) -> Expectations:
    """The expectations of a suite, from `expectations/<suite>*.toml`."""
    entries = []
    for path in sorted(FOLDER.glob(f"{suite}*.toml")):
        document = tomllib.loads(path.read_text(encoding="utf-8"))
        for kind, tables in document.items():
            if kind not in ("internal", "expected"):
                raise ValueError(f"{path.name}: unknown table {kind!r}")
            for table in tables:
                if set(table) - _KEYS or not table.get("reason") or _LAZY_REASON.search(table["reason"]):
                    raise ValueError(f"{path.name}: an entry needs tests and a real reason: {table}")
                if _applies(table, kind, loop, modes):
                    entries.append(Entry(kind, tuple(table["tests"]), table["reason"]))
    return Expectations(entries)
