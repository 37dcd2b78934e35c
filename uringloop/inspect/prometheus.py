"""The statistics of loops in Prometheus's text format. Opens no port: the program serves the text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from uringloop.inspect.statistics import COUNTERS, Statistics

HELP = {
    "turns": "Turns of the loop",
    "callbacks": "Callbacks, timers and completed operations run",
    "submitted": "Operations handed to the kernel",
    "completed": "Completions the kernel reported",
    "sleeps": "Waits in the kernel",
    "wakes": "Waits ended by another thread",
    "system_calls": "System calls to submit or wait",
    "ready": "Callbacks waiting for the next turn",
    "timers": "Timers scheduled",
    "waiting": "Callbacks handed in by other threads and not yet taken",
    "in_kernel": "Operations in the kernel",
    "transports": "Transports open",
    "buffers": "Receive buffers",
    "buffers_out": "Receive buffers not given back yet",
    "cpu_seconds": "CPU time of the thread that runs the loop",
}


def prometheus_text(loops: Mapping[str, Any]) -> str:
    """Return the text for `{name: loop}`, or for `{name: loop.statistics()}`, if another thread produces the text."""
    found = {
        name: loop if isinstance(loop, Statistics) else loop.statistics() for name, loop in loops.items()
    }
    lines = []
    for field in fields(Statistics):
        if field.name == "engine":
            continue
        counter = field.name in COUNTERS
        metric = f"uringloop_{field.name}{'_total' if counter else ''}"
        lines.append(f"# HELP {metric} {HELP[field.name]}.")
        lines.append(f"# TYPE {metric} {'counter' if counter else 'gauge'}")
        for name, one in found.items():
            labels = f'loop="{_escaped(name)}",engine="{one.engine}"'
            lines.append(f"{metric}{{{labels}}} {getattr(one, field.name)}")
    return "\n".join(lines) + "\n"


def _escaped(name: str) -> str:
    return name.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
