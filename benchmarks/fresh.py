"""The rows of fresh processes: `python server.py`, as a user starts it. Nothing has settled its heap before."""

from __future__ import annotations

from statistics import median
from typing import Any

from benchmarks.candidate import Candidate
from benchmarks.load import Load, figures, run_load
from benchmarks.row import Metric, Row
from benchmarks.server import Order, Server

BALLASTS = tuple(range(0, 1_000_001, 111_111))
METRICS = (
    Metric("cpu", "s", higher_is_better=False),
    Metric("faults", "", higher_is_better=False, compared=False),  # often none at all
    Metric("rate", "/s"),
)


def measure_fresh(row: Row, candidate: Candidate, seconds: float) -> dict[str, float]:
    """A server with each ballast: the median of their processor times, and the most page faults per 1,000 messages."""
    load = Load(**row.arguments["load"])
    found: list[dict[str, float]] = []
    for ballast in BALLASTS:
        order = Order("fresh", ballast=ballast, **row.arguments["order"])
        with Server(candidate, order) as server:
            before = server.page_faults()
            said = run_load(order, load, server, seconds, row.timeout + seconds)
            faults = server.page_faults() - before
        # The client's warm-up faulted, too.
        messages = said["messages"] * (1 + load.warm_up / said["seconds"])
        found.append({**figures(said), "faults": faults * 1000 / messages})
    return {
        "cpu": median(one["cpu"] for one in found),
        "rate": median(one["rate"] for one in found),
        "faults": max(one["faults"] for one in found),
    }


def fresh_rows() -> list[Row]:
    sizes = {"1k": 1024, "10k": 10 * 1024, "40k": 40 * 1024, "100k": 100 * 1024}
    return [fresh_row(label, {"size": size}) for label, size in sizes.items()]


def fresh_row(label: str, order: dict[str, Any]) -> Row:
    return Row(
        f"fresh-{label}",
        "fresh",
        f"`python server.py`, {label}, 50 conn., CPU/msg",
        METRICS,
        arguments={"order": order, "load": {"connections": 50, "warm_up": 0.3}},
        measure=measure_fresh,
        seconds=0.3,
        native=("c-epoll", "c-uring"),
        extra_candidates=("uringloop-epoll",),
        max_rounds=15,
    )
