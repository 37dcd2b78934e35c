"""The page on performance shows what was measured, the losses too."""

import json
from pathlib import Path

import pytest

from benchmarks import page
from benchmarks.candidate import CANDIDATES, CONTROL, OURS
from benchmarks.report import as_json
from benchmarks.result import Results, Sample
from benchmarks.rows import all_rows

FACTS = {"load at the end": "1.00 1.00 1.00", "python": "CPython 3.14.0"}


def measured(ours: float, theirs: float) -> Results:
    """A run of one row, in which a peer stands beside the control."""
    row = next(row for row in all_rows() if row.name == "sleep-0")
    rates = {CONTROL: 1.0, OURS: ours, "uvloop": theirs}
    return Results(
        [row],
        [candidate for candidate in CANDIDATES if candidate.name in rates],
        [
            Sample(row.name, name, 0, {metric.name: rate for metric in row.metrics})
            for name, rate in rates.items()
        ],
    )


@pytest.mark.parametrize(("ours", "losses"), [(3.0, 0), (1.5, 1)])
def test_losses_are_shown(ours: float, losses: int) -> None:
    made = page.pages(measured(ours, 2.0), FACTS)
    assert made[page.PAGE].count("**LOSS") == losses
    assert made[page.PICTURE].count("LOSS: 0.75 of uvloop") == losses


@pytest.mark.parametrize(
    ("rounds", "said"),
    [
        ([1.01, 0.99, 0.995], "even: 0.995 of uvloop"),
        ([0.99, 1.01, 1.005], "even: 1.005 of uvloop"),
        ([0.99, 0.995, 0.999], "**LOSS: 0.995 of uvloop**"),
        ([0.90, 0.95, 1.01], "**LOSS: 0.950 of uvloop**"),
        ([1.01, 1.02, 1.03], "1.02 x uvloop"),
    ],
)
def test_a_difference_within_the_spread_is_even(rounds: list[float], said: str) -> None:
    results = measured(1.0, 1.0)
    name = results.rows[0].metrics[0].name
    results.samples = [
        Sample("sleep-0", candidate, number, {name: rate})
        for number, ours in enumerate(rounds)
        for candidate, rate in ((CONTROL, 0.5), ("uvloop", 1.0), (OURS, ours))
    ]
    assert f"| {said} |" in page.pages(results, FACTS)[page.PAGE]


def test_the_page_is_of_what_was_written_down(tmp_path: Path) -> None:
    results = measured(3.0, 2.0)
    written = tmp_path / "results.json"
    written.write_text(as_json(results, FACTS))
    assert json.loads(written.read_text())["samples"]
    assert page.pages(*page.load(written)) == page.pages(results, FACTS)


@pytest.mark.parametrize(("load", "warned"), [("1.90 1.00 1.00", False), ("7.51 8.10 6.99", True)])
def test_a_busy_machine_is_named(load: str, warned: bool) -> None:
    assert ("Other processes used the machine" in page.busy({"load at the end": load})) is warned
