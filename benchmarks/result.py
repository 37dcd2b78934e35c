"""Results: every sample of a run, and the cells made of them. Never measures, never prints."""

from __future__ import annotations

import statistics
from dataclasses import dataclass, field

from benchmarks.candidate import CONTROL, OURS, Candidate
from benchmarks.row import Metric, Row

NEARLY = 0.03
UNSTEADY = 0.08  # how far the median of the ratios may be from the ratio of the medians


@dataclass(frozen=True)
class Sample:
    """One candidate, one row, one round. `error` says why there are no values."""

    row: str
    candidate: str
    round: int
    values: dict[str, float]
    error: str = ""


@dataclass(frozen=True)
class Cell:
    """One figure of the table: the median of the per-round ratios to the base, their range, the raw
    median.
    """

    raw: float
    ratio: float | None
    low: float
    high: float
    rounds: int
    error: str = ""

    @property
    def spread(self) -> float:
        """Half the range of the ratios, as a fraction of their median."""
        return (self.high - self.low) / 2 / self.ratio if self.ratio else 0.0


@dataclass(frozen=True)
class Verdict:
    """How our loop stands in a row: the ratio to the best peer."""

    ratio: float
    peer: str
    low: float
    high: float

    @property
    def even(self) -> bool:
        """Some rounds were won and some lost, and by little: another run may say otherwise."""
        return self.low < 1.0 < self.high and abs(self.ratio - 1.0) <= NEARLY

    @property
    def lost(self) -> bool:
        return self.ratio < 1.0 and not self.even


@dataclass
class Results:
    """All samples of one run."""

    rows: list[Row]
    candidates: list[Candidate]
    samples: list[Sample] = field(default_factory=list)
    skipped: dict[str, str] = field(default_factory=dict)  # row -> why this machine cannot run it
    retried: list[Sample] = field(default_factory=list)  # failures that a second try did not repeat

    def values(self, row: Row, metric: Metric, candidate: str) -> dict[int, float]:
        """Round -> value; rounds in which the candidate failed are absent."""
        return {
            sample.round: sample.values[metric.name]
            for sample in self.samples
            if sample.row == row.name and sample.candidate == candidate and metric.name in sample.values
        }

    def error(self, row: Row, candidate: str) -> str:
        for sample in self.samples:
            if sample.row == row.name and sample.candidate == candidate and sample.error:
                return sample.error
        return ""

    def ran(self, row: Row) -> list[str]:
        """The names of the candidates that have a sample in the row, in the order of the candidates."""
        present = {sample.candidate for sample in self.samples if sample.row == row.name}
        return [candidate.name for candidate in self.candidates if candidate.name in present]

    def cell(self, row: Row, metric: Metric, candidate: str, base: str = CONTROL) -> Cell | None:
        """None when the candidate did not take part.

        A candidate that failed is worth zero, whatever it did before.
        """
        if candidate not in self.ran(row):
            return None
        error = self.error(row, candidate)
        if error:
            return Cell(0.0, 0.0 if metric.compared else None, 0.0, 0.0, 0, error)
        values = self.values(row, metric, candidate)
        if not values:
            return None
        bases = self.values(row, metric, base)
        ratios = [metric.ratio(value, bases[number]) for number, value in values.items() if number in bases]
        known = [ratio for ratio in ratios if ratio is not None]
        raw = statistics.median(values.values())
        if not known:
            return Cell(raw, None, 0.0, 0.0, len(values))
        return Cell(raw, statistics.median(known), min(known), max(known), len(known))

    def unsteady(self, row: Row) -> bool:
        """Whether the row's first metric says two things: our ratio to a loop by the rounds, and by the raw medians.

        They differ where the machine, or the row, had two modes, and more rounds are needed to know."""
        metric = row.metrics[0]
        ours = self.cell(row, metric, OURS)
        if not metric.compared or ours is None or ours.error:
            return False
        for peer in self.ran(row):
            by_rounds, theirs = self.cell(row, metric, OURS, base=peer), self.cell(row, metric, peer)
            if peer == OURS or by_rounds is None or theirs is None or not by_rounds.ratio:
                continue
            by_medians = metric.ratio(ours.raw, theirs.raw)
            if by_medians and abs(by_medians / by_rounds.ratio - 1) > UNSTEADY:
                return True
        return False

    def verdict(self, row: Row, metric: Metric) -> Verdict | None:
        """Our loop against the best other loop of the row (bare C is a limit, not a peer)."""
        if not metric.compared or OURS not in self.ran(row):
            return None
        peers = [
            c.name for c in self.candidates if not c.native and c.module != OURS and c.name in self.ran(row)
        ]
        best: Verdict | None = None
        for peer in peers:
            cell = self.cell(row, metric, OURS, base=peer)
            if cell is None or cell.ratio is None or self.error(row, peer):
                continue
            if best is None or cell.ratio < best.ratio:
                best = Verdict(cell.ratio, peer, cell.low, cell.high)
        return best
