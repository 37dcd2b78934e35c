"""Rounds: the order in which everything is measured. Round by round, row by row, each candidate in turn.

Every round starts fresh worker processes, so that no loop is measured in one lucky (or unlucky) process only,
and every row of every round starts with another candidate, so that no candidate always has the same neighbour.
"""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.candidate import CONTROL, Candidate
from benchmarks.progress import Progress
from benchmarks.result import Results, Sample
from benchmarks.row import Failed, Row, Skipped
from benchmarks.worker import Worker


def available(candidates: Sequence[Candidate]) -> tuple[list[Candidate], dict[str, str]]:
    """The candidates that this Python can run, and for the others why not."""
    found, missing = [], {}
    for candidate in candidates:
        if candidate.native:
            found.append(candidate)
            continue
        worker = Worker(candidate)
        try:
            worker.ask({}, 10)
            found.append(candidate)
        except Failed as reason:
            missing[candidate.name] = str(reason)
        finally:
            worker.close()
    return found, missing


class Run:
    """One run of the benchmark. Owns the workers of the current round."""

    def __init__(
        self,
        rows: Sequence[Row],
        candidates: Sequence[Candidate],
        asked: set[str],
        seconds: float,
        share: float = 1.0,
    ) -> None:
        self.results = Results(list(rows), list(candidates))
        self._asked = asked
        self._seconds = seconds  # 0: what the row says, of which
        self._share = share
        self._failures: set[tuple[str, str]] = set()
        self._workers: dict[str, Worker] = {}

    def rounds(self, count: int) -> Results:
        plan = [row for number in range(count) for row in self.results.rows if self._wanted(row, number)]
        self._progress = Progress(sum(len(self._taking_part(row)) for row in plan))
        try:
            for number in range(count):
                for index, row in enumerate(self.results.rows):
                    if self._wanted(row, number):
                        self._row(row, number, index, f"round {number + 1}/{count}")
                self._close_workers()
            self._settle(count)
        except KeyboardInterrupt:
            self._progress.note("interrupted: these are the results so far")
        finally:
            self._close_workers()
            self._progress.end()
        return self.results

    def _settle(self, count: int) -> None:
        """More rounds, with samples of twice the length, for the rows whose ratios and raw medians disagree: until they
        agree, but no more than twice as many as the run had. What is unsteady then, the tables say. A run of one
        or two rounds has no medians to speak of."""
        self._share *= 2
        self._seconds *= 2
        for number in range(count, 3 * count if count > 2 else count):
            for index, row in enumerate(self.results.rows):
                if self.results.unsteady(row):
                    self._row(row, number, index, "once more, unsteady:")
            self._close_workers()

    def _wanted(self, row: Row, number: int) -> bool:
        return not row.max_rounds or number < row.max_rounds

    def _taking_part(self, row: Row) -> list[Candidate]:
        return [candidate for candidate in self.results.candidates if row.takes(candidate, self._asked)]

    def _row(self, row: Row, number: int, index: int, where: str) -> None:
        if row.name in self.results.skipped:
            return
        taking_part = self._taking_part(row)
        first = (number + index) % max(len(taking_part), 1)
        for candidate in taking_part[first:] + taking_part[:first]:
            self._progress.step(f"{where}  {row.name}  {candidate.name}")
            if row.name in self.results.skipped or (row.name, candidate.name) in self._failures:
                continue
            self._cell(row, candidate, number)

    def _cell(self, row: Row, candidate: Candidate, number: int) -> None:
        """One sample. A failure gets a second try; a hang does not, it costs everybody's time."""
        for attempt in (1, 2):
            try:
                values = self._sample(row, candidate)
            except Skipped as reason:
                if candidate.name == CONTROL or candidate.native:
                    self.results.skipped[row.name] = str(reason)
                    self._progress.note(f"skipped {row.name}: {reason}")
                else:
                    self._failures.add((row.name, candidate.name))
                return
            except Failed as reason:
                failure = Sample(row.name, candidate.name, number, {}, str(reason))
                if attempt == 1 and not failure.error.startswith("hung"):
                    self.results.retried.append(failure)
                    continue
                if attempt > 1:
                    self.results.retried.pop()
                self.results.samples.append(failure)
                self._failures.add((row.name, candidate.name))
                self._progress.note(f"{candidate.name} failed in {row.name}: {reason}")
            else:
                self.results.samples.append(Sample(row.name, candidate.name, number, values))
            return

    def _sample(self, row: Row, candidate: Candidate) -> dict[str, float]:
        seconds = self._seconds or row.seconds * self._share
        if row.measure is not None:
            return row.measure(row, candidate, seconds)
        if candidate.name not in self._workers:
            self._workers[candidate.name] = Worker(candidate)
        return self._workers[candidate.name].sample(row, seconds)

    def _close_workers(self) -> None:
        for worker in self._workers.values():
            worker.close()
        self._workers.clear()
