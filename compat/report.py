"""Prints a verdict, as a summary for the terminal and as the page docs/compatibility.md."""

from __future__ import annotations

import json
import platform
import sys
from pathlib import Path
from typing import Any

from compat import verdict as v
from compat.runner import Outcome

_LAST_LINES = 12


def _brief(outcome: Outcome | None) -> str:
    if outcome is None:
        return "did not run"
    lines = [line.strip() for line in outcome.message.splitlines() if line.strip()]
    if not lines:
        return outcome.status
    # the last line of a traceback names the error; the first line of a crash or timeout says what happened
    line = lines[0] if outcome.status in ("crash", "timeout") else lines[-1]
    return f"{outcome.status}: {line[:140]}"


def print_verdict(verdict: v.Verdict, verbose: bool) -> None:
    """The failures of a suite, then its counts."""
    modes = "".join(f" --{mode}" for mode in verdict.modes)
    print(f"\n== {verdict.title}: {verdict.loop}{modes}, Python {platform.python_version()}")
    for judged in verdict.tests:
        if judged.verdict in v.BAD:
            print(f"{judged.verdict.upper():16} {judged.test}\n    {_brief(judged.candidate)}")
            if verbose and judged.candidate is not None:
                print(
                    "\n".join(
                        "        " + line for line in judged.candidate.message.splitlines()[-_LAST_LINES:]
                    )
                )
    for pattern in verdict.stale:
        print(f"STALE            no test matches the expectation {pattern!r}")
    for name in v.ORDER:
        if count := verdict.count(name):
            print(f"{count:6} {name}")
    print(
        f"{verdict.loop} passes {verdict.count(v.PASSED)} of {verdict.applicable()} applicable tests"
        f" (control passes {verdict.control_passes()} of {len(verdict.tests)} in all)"
    )


def as_json(verdict: v.Verdict) -> dict[str, Any]:
    def outcome(of: Outcome | None) -> dict[str, Any] | None:
        return None if of is None else {"status": of.status, "seconds": of.seconds, "message": of.message}

    return {
        "suite": verdict.suite,
        "title": verdict.title,
        "loop": verdict.loop,
        "modes": list(verdict.modes),
        "python": platform.python_version(),
        "free_threaded": "free-threading" in sys.version,
        "applicable": verdict.applicable(),
        "control_passes": verdict.control_passes(),
        "counts": {name: verdict.count(name) for name in v.ORDER},
        "stale": verdict.stale,
        "tests": {
            judged.test: {
                "verdict": judged.verdict,
                "reason": judged.reason,
                "control": outcome(judged.control),
                "candidate": outcome(judged.candidate),
            }
            for judged in verdict.tests
        },
    }


def write_json(path: Path, verdicts: list[v.Verdict]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps([as_json(verdict) for verdict in verdicts], indent=1) + "\n", encoding="utf-8")
