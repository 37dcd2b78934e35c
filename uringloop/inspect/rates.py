"""Rates: what a loop did per second between two snapshots of its process."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Rates:
    turns: float  # per second, as are the next three
    callbacks: float
    submitted: float
    system_calls: float
    busy: float | None  # fraction of the time that the loop was awake, from 0 to 1; None if not known
    cpu: float  # fraction of one core


def rates(before: dict[str, Any], after: dict[str, Any]) -> dict[int, Rates]:
    """The rates by loop number; without loops that were made between the two snapshots."""
    seconds = max(after["time"] - before["time"], 1e-6)
    earlier = {loop["number"]: loop for loop in before["loops"]}
    found = {}
    for loop in after["loops"]:
        if loop["number"] not in earlier:
            continue
        then = earlier[loop["number"]]

        def rate(name: str, then: dict[str, Any] = then, loop: dict[str, Any] = loop) -> float:
            return float((loop["statistics"][name] - then["statistics"][name]) / seconds)

        found[loop["number"]] = Rates(
            rate("turns"),
            rate("callbacks"),
            rate("submitted"),
            rate("system_calls"),
            _busy(then, loop, seconds),
            max(0.0, loop["cpu_seconds"] - then["cpu_seconds"]) / seconds,
        )
    return found


def _busy(then: dict[str, Any], loop: dict[str, Any], seconds: float) -> float | None:
    if loop["state"] != "running":
        return 0.0
    if then["slept_seconds"] is None or loop["slept_seconds"] is None:
        return None
    slept = loop["slept_seconds"] - then["slept_seconds"]
    return float(min(1.0, max(0.0, 1.0 - slept / seconds)))
