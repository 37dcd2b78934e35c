"""OpenTelemetry: the export of loops' metrics, and of slow callbacks as spans, to the program's providers. Needs the
extra `opentelemetry`.

The metrics are loop.statistics(), read at export, which costs the loop nothing. The durations of callbacks have to be
measured one by one, so the histogram and the spans exist only with `callbacks=True`."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import fields
from types import TracebackType
from typing import Any

from opentelemetry import metrics, trace

from uringloop._core.loop.monitor import SAMPLES, TIMES, LoopMonitor
from uringloop.inspect.observers import Observer, loops
from uringloop.inspect.prometheus import HELP
from uringloop.inspect.statistics import COUNTERS, Statistics
from uringloop.version import __version__

__all__ = ["Instrumentation", "instrument"]

_UNITS = {"cpu_seconds": "s"}
_NAMES = {"cpu_seconds": "cpu_time"}


class Instrumentation:
    """What `instrument` returns. Exports until `end`; as a context manager, until the end of the block."""

    def __init__(
        self,
        loop: Any,
        callbacks: bool,
        slow_seconds: float,
        meter_provider: metrics.MeterProvider | None,
        tracer_provider: trace.TracerProvider | None,
    ) -> None:
        self._loop = loop
        self._slow_ns = int(slow_seconds * 1e9)
        self._ended = False
        self._observer: Observer | None = None
        self._hooks: list[tuple[LoopMonitor, Callable[..., object]]] = []
        meter = metrics.get_meter("uringloop", __version__, meter_provider)
        self._tracer = trace.get_tracer("uringloop", __version__, tracer_provider)
        if callbacks:
            # Made first, so that the values it gets while the other instruments are read are exported with them.
            self._durations = meter.create_histogram(
                "uringloop.callback.duration",
                "s",
                "How long callbacks take: of busy loops, an even choice of a few thousand an export",
            )
            self._observer = Observer(TIMES | SAMPLES, loop, self._begin)
        for field in fields(Statistics):
            if field.name == "engine":
                continue
            make = meter.create_observable_gauge
            if field.name in COUNTERS:
                make = meter.create_observable_counter  # type: ignore[assignment]
            make(
                f"uringloop.loop.{_NAMES.get(field.name, field.name)}",
                [self._reader(field.name)],
                _UNITS.get(field.name, "1"),
                HELP[field.name],
            )

    def __enter__(self) -> Instrumentation:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.end()

    def end(self) -> None:
        """End the export; may be called more than once."""
        self._ended = True
        if self._observer is not None:
            self._observer.end()
        hooks, self._hooks = self._hooks, []
        for watch, hook in hooks:
            watch.remove_slow_hook(hook)

    def _loops(self) -> list[Any]:
        if self._ended:
            return []
        return [loop for loop in loops() if self._loop is None or loop is self._loop]

    def _reader(self, name: str) -> Callable[[metrics.CallbackOptions], Iterable[metrics.Observation]]:
        def read(options: metrics.CallbackOptions) -> Iterable[metrics.Observation]:
            found = []
            for loop in self._loops():
                if name == "turns" and self._observer is not None:  # once per export
                    for seconds in loop.monitor.take_samples():
                        self._durations.record(seconds, _attributes(loop))
                found.append(metrics.Observation(getattr(loop.statistics(), name), _attributes(loop)))
            return found

        return read

    def _begin(self, loop: Any, watch: LoopMonitor) -> None:
        attributes = _attributes(loop)

        def slow(name: str, detail: str | None, began: int, took: int) -> None:
            started = time.time_ns() - (time.monotonic_ns() - began)
            about = {**attributes, "code.function.name": name, "thread.id": threading.get_native_id()}
            if detail is not None:
                about["uringloop.callback.detail"] = detail
            span = self._tracer.start_span("slow callback", start_time=started, attributes=about)
            span.end(started + took)

        watch.add_slow_hook(self._slow_ns, slow)
        self._hooks.append((watch, slow))


def _attributes(loop: Any) -> dict[str, str | int]:
    return {"uringloop.loop": loop._number, "uringloop.engine": loop._engine_name}


def instrument(
    loop: Any = None,
    *,
    callbacks: bool = False,
    slow_seconds: float = 0.1,
    meter_provider: metrics.MeterProvider | None = None,
    tracer_provider: trace.TracerProvider | None = None,
) -> Instrumentation:
    """Export the statistics of a loop, or with None of all present and future loops.

    With `callbacks`, also export the durations of callbacks, and a span for each that takes `slow_seconds` or longer.
    That costs one reading of the clock per callback."""
    if not slow_seconds >= 0:
        raise ValueError(f"slow_seconds must be at least 0, not {slow_seconds!r}")
    if loop is not None and loop.is_closed():
        raise RuntimeError("Event loop is closed")
    return Instrumentation(loop, callbacks, slow_seconds, meter_provider, tracer_provider)
