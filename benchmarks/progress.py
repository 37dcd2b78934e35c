"""Progress: how far a run is, on the terminal: a bar where rich is installed, else one line that is overwritten. Silent
when standard error is no terminal."""

from __future__ import annotations

import sys
import time
from typing import Any


def _bar(total: int) -> Any:
    """rich's bar, already shown, or None."""
    try:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
    except ImportError:
        return None
    # no thread of its own: it would run on the cores that are measured
    columns = (BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(), TextColumn("{task.description}"))
    bar = Progress(*columns, console=Console(stderr=True), auto_refresh=False, transient=True)
    bar.add_task("", total=total)
    bar.start()
    return bar


class Progress:
    """Of `total` samples, each announced by `step`."""

    def __init__(self, total: int) -> None:
        self._total = max(total, 1)
        self._begun = -1  # samples; the first step begins one and ends none
        self._start = time.monotonic()
        self._shown = sys.stderr.isatty()
        self._bar = _bar(self._total) if self._shown else None

    def step(self, text: str) -> None:
        """The next sample begins."""
        self._begun += 1
        if self._bar is not None:
            self._bar.update(self._bar.task_ids[0], completed=self._begun, description=text, refresh=True)
        elif self._shown:
            each = (time.monotonic() - self._start) / max(self._begun, 1)
            left = each * (self._total - self._begun)
            line = f"[{self._begun}/{self._total}] {left:4.0f} s left  {text}"
            sys.stderr.write("\r\x1b[K" + line[:110])
            sys.stderr.flush()

    def note(self, text: str) -> None:
        """A line that stays."""
        if self._bar is not None:
            self._bar.console.print(text, markup=False, highlight=False)
            return
        sys.stderr.write(("\r\x1b[K" if self._shown else "") + text + "\n")
        sys.stderr.flush()

    def end(self) -> None:
        if self._bar is not None:
            self._bar.stop()
        elif self._shown:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
