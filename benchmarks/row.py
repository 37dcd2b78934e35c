"""Row: one thing that is measured, and the metrics it yields. Never runs anything by itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from benchmarks.candidate import Candidate


class Skipped(Exception):
    """The row cannot run on this machine, because a tool or a package is missing. Reported once; not a failure."""


class Failed(Exception):
    """The candidate failed, crashed or hung in this row: it gets a zero."""


@dataclass(frozen=True)
class Metric:
    """One figure of a row. `compared` is False for plain facts (counts), which are shown but not made
    into ratios.
    """

    name: str
    unit: str
    higher_is_better: bool = True
    compared: bool = True

    def ratio(self, value: float, base: float) -> float | None:
        """How many times better than `base`; a candidate without a value is worth 0, without a base
        there is no ratio.
        """
        if not self.compared or base <= 0:
            return None
        if value <= 0:
            return 0.0
        return value / base if self.higher_is_better else base / value


CPU = Metric("cpu", "s", higher_is_better=False)  # per message, of the process with the loop
RATE = Metric("rate", "/s")
BYTES = Metric("bytes", "B/s")
P50 = Metric("p50", "s", higher_is_better=False)
P99 = Metric("p99", "s", higher_is_better=False)
MEMORY = Metric("memory", "B", higher_is_better=False)
CLIENT = Metric("client", "cores", higher_is_better=False, compared=False)
CPU_FIRST = (CPU, RATE, P50, P99)
RATE_FIRST = (RATE, CPU, P50, P99)


@dataclass(frozen=True)
class Row:
    """What is measured. The first metric is the one the tables show.

    A row with `work` ("module:function" in this package, called with the loop and the seconds to fill) runs
    inside a worker process; a row with `measure` brings its own processes.
    """

    name: str
    group: str
    title: str
    metrics: tuple[Metric, ...] = (RATE,)
    work: str = ""
    arguments: dict[str, Any] = field(default_factory=dict)
    measure: Callable[[Row, Candidate, float], dict[str, float]] | None = None
    quick: bool = False
    native: tuple[str, ...] = ()  # the bare C servers that take part
    extra_candidates: tuple[str, ...] = ()
    only: tuple[str, ...] = ()  # the candidates that have what is measured; (): all
    seconds: float = 0.15  # the length of one sample
    timeout: float = 20.0
    max_rounds: int = 0  # 0: as many as the run has

    def takes(self, candidate: Candidate, asked: set[str]) -> bool:
        """Whether the candidate takes part: optional ones when this row or the user asked for them."""
        if self.only and candidate.name not in self.only:
            return False
        if candidate.native and candidate.name not in self.native + self.extra_candidates:
            return False
        if candidate.name in self.extra_candidates or candidate.name in asked:
            return True
        return not candidate.optional
