"""Keeps what stock asyncio did, so that it need not run again beside every candidate.

Stock asyncio does not change between two runs of ours; the record is bound to the interpreter, the suite's
version and the mode, and `--fresh-control` throws it away.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

from compat.catalogue import SUITES
from compat.runner import ROOT, Outcome, Results

FOLDER = ROOT / "build" / "compat" / "control"


def _path(suite: str, debug: bool, pattern: str | None, modules: list[str]) -> Path:
    key = "|".join([sys.version, sys.prefix, repr(SUITES[suite]), str(debug), pattern or "", *modules])
    digest = hashlib.sha256(key.encode()).hexdigest()[:16]
    return FOLDER / f"{suite}-{sys.version_info[0]}.{sys.version_info[1]}-{digest}.json"


def results(
    suite: str, debug: bool, fresh: bool, pattern: str | None, modules: list[str], run: Callable[[], Results]
) -> Results:
    """What stock asyncio did with these tests: from the record, or by running them now."""
    path = _path(suite, debug, pattern, modules)
    if path.exists() and not fresh:
        record = json.loads(path.read_text(encoding="utf-8"))
        return Results({test: Outcome(**outcome) for test, outcome in record.items()})
    fresh_results = run()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(
        json.dumps({test: asdict(outcome) for test, outcome in fresh_results.outcomes.items()}),
        encoding="utf-8",
    )
    return fresh_results
