"""Compares the candidate with the control, test by test, under the expectations."""

from __future__ import annotations

from dataclasses import dataclass, field

from compat.expectations import Expectations
from compat.loops import STOCK
from compat.runner import Outcome, Results

# verdicts that fail a run
FAILED = "failed"
UNEXPECTED_PASS = "unexpected pass"
# verdicts that don't
PASSED = "passed"
NO_LOOP = "no loop used"
BETTER = "passed, and control does not"
EXPECTED = "expected failure"
INTERNAL = "internals"
CONTROL_FAILS = "neither passes"
SKIPPED = "skipped on both"

ORDER = (PASSED, BETTER, NO_LOOP, INTERNAL, SKIPPED, CONTROL_FAILS, EXPECTED, UNEXPECTED_PASS, FAILED)
BAD = (FAILED, UNEXPECTED_PASS)


@dataclass
class Judged:
    """One test with both outcomes."""

    test: str
    verdict: str
    control: Outcome | None
    candidate: Outcome | None
    reason: str = ""


@dataclass
class Verdict:
    """A suite, judged."""

    suite: str
    title: str
    loop: str
    modes: tuple[str, ...]
    tests: list[Judged] = field(default_factory=list)
    stale: list[str] = field(default_factory=list)

    def count(self, verdict: str) -> int:
        return sum(judged.verdict == verdict for judged in self.tests)

    def applicable(self) -> int:
        """Tests that use the candidate and that the control passes: what the candidate has to pass."""
        return sum(self.count(verdict) for verdict in (PASSED, EXPECTED, UNEXPECTED_PASS, FAILED))

    def control_passes(self) -> int:
        return sum(judged.control is not None and judged.control.status == "pass" for judged in self.tests)

    def failed(self) -> bool:
        return bool(self.stale) or any(judged.verdict in BAD for judged in self.tests)


def _judge(
    test: str,
    control: Outcome | None,
    candidate: Outcome | None,
    excluded: bool,
    known: Expectations,
    loop: str,
) -> Judged:
    # a test that is named after the loop's class has another name on the candidate
    if excluded or (candidate is None and known.find("internal", test) is not None):
        entry = known.find("internal", test)
        return Judged(test, INTERNAL, control, candidate, entry.reason if entry else "")
    entry = known.find("expected", test)
    passes = candidate is not None and candidate.status == "pass"
    if entry is not None:
        return Judged(test, UNEXPECTED_PASS if passes else EXPECTED, control, candidate, entry.reason)
    if passes:
        assert candidate is not None
        if not candidate.loops and loop != STOCK:
            return Judged(test, NO_LOOP, control, candidate)
        better = control is None or control.status != "pass"
        return Judged(test, BETTER if better else PASSED, control, candidate)
    if control is None or control.status == "pass":
        # a test that skips itself on the candidate only has not been passed either
        return Judged(test, FAILED, control, candidate)
    both_skip = control.status == "skip" and candidate is not None and candidate.status == "skip"
    return Judged(test, SKIPPED if both_skip else CONTROL_FAILS, control, candidate)


def judge(
    suite: str,
    title: str,
    loop: str,
    modes: tuple[str, ...],
    control: Results,
    candidate: Results,
    known: Expectations,
    whole: bool,
) -> Verdict:
    """Every test of either run. `whole`: it was the whole suite, so expectations not used are stale."""
    verdict = Verdict(suite, title, loop, modes)
    names = dict.fromkeys([*control.outcomes, *candidate.outcomes, *sorted(candidate.excluded)])
    for test in names:
        verdict.tests.append(
            _judge(
                test,
                control.outcomes.get(test),
                candidate.outcomes.get(test),
                test in candidate.excluded,
                known,
                loop,
            )
        )
    # a module that never came to its tests says nothing about what is stale
    broken = any(
        test.endswith(" (module)") and each.status == "crash" for test, each in candidate.outcomes.items()
    )
    verdict.stale = known.stale() if whole and not broken and loop != STOCK else []
    return verdict
