"""The page on performance shows what was measured, the losses too."""

import json
import re
from pathlib import Path

import pytest

from benchmarks import page
from benchmarks.candidate import CANDIDATES, CONTROL, OURS, Candidate
from benchmarks.picture import BARS, picture
from benchmarks.report import as_json
from benchmarks.result import Results, Sample
from benchmarks.rounds import Run
from benchmarks.row import Row
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
    assert picture(measured(ours, 2.0)).count("LOSS: 0.75 of uvloop") == losses


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


def test_a_row_whose_medians_contradict_its_ratios_is_unsteady() -> None:
    """Ours is ahead in two of three rounds, and behind by the raw medians: the rounds had different machines."""
    results = measured(1.0, 1.0)
    name = results.rows[0].metrics[0].name
    results.samples = [
        Sample("sleep-0", candidate, number, {name: rate})
        for number, rates in enumerate([(1.1, 1.0), (3.3, 3.0), (1.0, 2.0)])
        for candidate, rate in zip((OURS, "uvloop"), rates, strict=True)
    ]
    assert results.unsteady(results.rows[0])
    assert ", unsteady |" in page.pages(results, FACTS)[page.PAGE]
    results.samples = [sample for sample in results.samples if sample.round < 2]
    assert not results.unsteady(results.rows[0])


class Scripted(Run):
    """A run whose samples are given: by the number of the round."""

    def __init__(self, rates: dict[str, list[float]]) -> None:
        row = next(row for row in all_rows() if row.name == "sleep-0")
        super().__init__([row], [c for c in CANDIDATES if c.name in rates], set(), 0.1)
        self.rates, self.lengths = rates, list[float]()

    def _sample(self, row: Row, candidate: Candidate) -> dict[str, float]:
        self.lengths.append(self._seconds)
        return {row.metrics[0].name: self.rates[candidate.name].pop(0)}


@pytest.mark.parametrize(
    ("ours", "theirs", "rounds"),
    [
        ([1.1, 1.1, 1.1], [1.0, 1.0, 1.0], 3),
        ([1.1, 3.3, 1.0, 1.1, 1.1], [1.0, 3.0, 2.0, 1.0, 1.0], 5),
        ([1.1, 3.3] * 4 + [1.0], [1.0, 3.0] * 4 + [2.0], 3),
        ([1.1, 1.0] * 2, [1.0, 9.0] * 2, 2),
        (
            [1.1, 3.3, 1.0] * 3,
            [1.0, 3.0, 2.0] * 3,
            9,
        ),  # never: after three times as many rounds it stays unsteady
    ],
)
def test_an_unsteady_row_is_measured_until_its_figures_agree(
    ours: list[float], theirs: list[float], rounds: int
) -> None:
    run = Scripted({CONTROL: [1.0] * 20, OURS: ours, "uvloop": theirs})
    run.rounds(min(rounds, 3))
    assert len(run.lengths) == 3 * rounds
    assert set(run.lengths[9:]) <= {0.2}


def test_the_bars_of_a_picture_have_one_scale() -> None:
    results = measured(3.0, 2.0)
    second = next(row for row in all_rows() if row.name == "chain")
    results.rows.append(second)
    results.samples += [
        Sample(second.name, name, 0, {metric.name: rate for metric in second.metrics})
        for name, rate in ((CONTROL, 1.0), (OURS, 6.0))
    ]
    drawn = picture(results)
    widths = [float(found) for found in re.findall(r"width='([\d.]+)' height='10' fill='(?!white)", drawn)]
    bars = [width for width in widths if width > 10]  # the legend's squares are 10 wide
    assert bars == [BARS / 6, BARS / 3, BARS / 2, BARS / 6, BARS]
    assert ">6x<" in drawn


def test_the_published_page_is_of_the_published_run() -> None:
    made = page.pages(*page.load(page.RECORD))
    for name, text in made.items():
        assert (page.PROJECT / name).read_text() == text, name
