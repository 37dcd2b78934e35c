"""Hints: what a snapshot shows that is probably a mistake, each in a sentence that names the culprit and the effect."""

from __future__ import annotations

import collections
from typing import Any

SLOW = 0.1  # seconds of one callback, during which nothing else of its loop runs
NEARLY = 0.9  # of the limit of descriptors


def hints(snapshot: dict[str, Any]) -> list[str]:
    """The hints about the process and its loops."""
    found = _descriptors(snapshot["descriptors"])
    for loop in snapshot["loops"]:
        found += _running(loop) + _slow(loop)
    return found


def _descriptors(counts: dict[str, int] | None) -> list[str]:
    if counts is None or counts["limit"] <= 0 or counts["open"] < NEARLY * counts["limit"]:
        return []
    used = f"{counts['open']} of {counts['limit']} descriptors are open"
    return [f"{used}: beyond the limit (ulimit -n), neither accept() nor open() gets one"]


def _running(loop: dict[str, Any]) -> list[str]:
    now = loop["running"]
    if now is None or not now["stack"]:
        return []
    return [
        f"loop {loop['number']} runs nothing but {_name(now)} for {now['seconds']:.1f} s: it does not yield"
    ]


def _slow(loop: dict[str, Any]) -> list[str]:
    """The slow callbacks of the last minute, by name, those that took the most time first."""
    took: dict[str, list[float]] = collections.defaultdict(list)
    for each in loop["slowest"]:
        if each["seconds"] >= SLOW:
            took[_name(each)].append(each["seconds"])
    return [
        f"loop {loop['number']} stood still {len(times)} time{'' if len(times) == 1 else 's'} in the last minute for "
        f"{name}: {sum(times):.2f} s together, {max(times):.2f} s at most"
        for name, times in sorted(took.items(), key=lambda each: -sum(each[1]))
    ]


def _name(what: dict[str, Any]) -> str:
    """The function's name; tasks of one coroutine count together, whatever their own names are."""
    return f"{what['name']}()"
