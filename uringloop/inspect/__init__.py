"""Inspection: statistics and operations of loops, tracing, watchdogs, and what this machine offers. It costs a loop
nothing while it is not used."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from uringloop.inspect.operations import Operation
    from uringloop.inspect.prometheus import prometheus_text
    from uringloop.inspect.server import Inspector, serve
    from uringloop.inspect.snapshots import snapshot
    from uringloop.inspect.statistics import Statistics
    from uringloop.inspect.stuck import Stuck, StuckFinder, StuckTask, find_stuck
    from uringloop.inspect.tracing import trace
    from uringloop.inspect.watchdogs import SlowCallback, Watchdog, watchdog

__all__ = [
    "Inspector",
    "Operation",
    "SlowCallback",
    "Statistics",
    "Stuck",
    "StuckFinder",
    "StuckTask",
    "Watchdog",
    "find_stuck",
    "prometheus_text",
    "serve",
    "snapshot",
    "trace",
    "watchdog",
]

# Imported on first use: a program that doesn't inspect its loops needs none of them.
_ROOMS = {
    "Inspector": "server",
    "Operation": "operations",
    "SlowCallback": "watchdogs",
    "Statistics": "statistics",
    "Stuck": "stuck",
    "StuckFinder": "stuck",
    "StuckTask": "stuck",
    "Watchdog": "watchdogs",
    "find_stuck": "stuck",
    "prometheus_text": "prometheus",
    "serve": "server",
    "snapshot": "snapshots",
    "trace": "tracing",
    "watchdog": "watchdogs",
}


def __getattr__(name: str) -> object:
    if name in _ROOMS:
        import importlib

        room = importlib.import_module(f"uringloop.inspect.{_ROOMS[name]}")
        globals()[name] = found = getattr(room, name)
        return found
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
