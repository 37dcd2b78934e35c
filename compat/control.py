"""Keeps what stock asyncio did, so that it need not run again beside every candidate.

Stock asyncio does not change between two runs of ours. A record is bound to the interpreter, the suite with
its pins, and the mode; `--fresh-control` throws it away.
"""

from __future__ import annotations

import fcntl
import fnmatch
import hashlib
import json
import sys
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

from compat.catalogue import SUITES
from compat.places import BUILD
from compat.runner import Outcome, Results, merged


def _path(suite: str, debug: bool) -> Path:
    key = "|".join([sys.version, sys.prefix, repr(SUITES[suite]), str(debug)])
    digest = hashlib.sha256(key.encode()).hexdigest()[:16]
    return BUILD / "control" / f"{suite}-{sys.version_info[0]}.{sys.version_info[1]}-{digest}.json"


def results(
    suite: str,
    debug: bool,
    fresh: bool,
    pattern: str | None,
    modules: list[str],
    run: Callable[[list[str]], dict[str, Results]],
) -> Results:
    """What stock asyncio did with these modules: from the record, or by running them whole, now."""
    path = _path(suite, debug)
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(f"{path}.lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        record = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
        todo = [module for module in modules if fresh or module not in record]
        for module, result in (run(todo) if todo else {}).items():
            record[module] = {test: asdict(outcome) for test, outcome in result.outcomes.items()}
        if todo:
            path.write_text(json.dumps(record), encoding="utf-8")
    known = {
        module: Results({test: Outcome(**outcome) for test, outcome in record[module].items()})
        for module in modules
    }
    total = merged(known)
    if pattern is not None:
        wanted = f"*{pattern}*"
        total.outcomes = {
            test: each for test, each in total.outcomes.items() if fnmatch.fnmatchcase(test, wanted)
        }
    return total
