"""Tells a verdict: on the terminal, and as data."""

from __future__ import annotations

import datetime
import json
import platform
import sysconfig
from pathlib import Path
from typing import Any

from compat import verdict as v
from compat.places import BUILD
from compat.runner import Outcome

_LAST_LINES = 12
# the summaries of whole runs, which docs/compatibility.md is made from
STORE = BUILD / "results"


def brief(outcome: Outcome | None) -> str:
    """An outcome in one line."""
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
            print(f"{judged.verdict.upper():16} {judged.test}\n    {brief(judged.candidate)}")
            if verbose and judged.candidate is not None:
                for line in judged.candidate.message.splitlines()[-_LAST_LINES:]:
                    print("        " + line)
    for pattern in verdict.stale:
        print(f"STALE            no test matches the expectation {pattern!r}")
    for name in v.ORDER:
        if count := verdict.count(name):
            print(f"{count:6} {name}")
    print(
        f"{verdict.loop} passes {verdict.count(v.PASSED)} of {verdict.applicable()} applicable tests"
        f" (control passes {verdict.control_passes()} of {len(verdict.tests)} in all)"
    )


def print_summary(verdicts: list[v.Verdict]) -> None:
    """One line a suite."""
    print()
    for verdict in verdicts:
        sign = "FAILED" if verdict.failed() else "ok"
        passed = f"{verdict.count(v.PASSED)} of {verdict.applicable()}"
        print(f"{sign:7} {verdict.suite:16} {passed:>14}   {verdict.title}")


def as_data(verdict: v.Verdict, messages: bool) -> dict[str, Any]:
    """A verdict as JSON can hold it; with whole messages, or with the line that names each error."""

    def outcome(of: Outcome | None) -> dict[str, Any] | None:
        if of is None:
            return None
        data: dict[str, Any] = {"status": of.status, "seconds": of.seconds}
        if messages:
            data["message"] = of.message
        elif of.status != "pass":
            data["brief"] = brief(of)
        return data

    return {
        "suite": verdict.suite,
        "title": verdict.title,
        "loop": verdict.loop,
        "modes": list(verdict.modes),
        "python": platform.python_version(),
        "free_threaded": bool(sysconfig.get_config_var("Py_GIL_DISABLED")),
        "date": datetime.date.today().isoformat(),
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


def keep(verdict: v.Verdict) -> None:
    """Remember a whole run for the page."""
    data = as_data(verdict, messages=False)
    version = ".".join(data["python"].split(".")[:2]) + ("t" if data["free_threaded"] else "")
    name = "-".join([verdict.suite, version, verdict.loop.replace(":", "."), *verdict.modes])
    STORE.mkdir(parents=True, exist_ok=True)
    (STORE / f"{name}.json").write_text(json.dumps(data), encoding="utf-8")


def write_json(path: Path, verdicts: list[v.Verdict]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    data = [as_data(verdict, messages=True) for verdict in verdicts]
    path.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
