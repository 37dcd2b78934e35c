from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

pytest.importorskip("opentelemetry.sdk", reason="the extra inspect-test is not installed")

from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from uringloop._core.loop.monitor import TIMES
from uringloop.inspect.observers import Observer
from uringloop.inspect.opentelemetry import instrument


class Exported:
    """What providers of the test's own got."""

    def __init__(self) -> None:
        self._reader = InMemoryMetricReader()
        self._exporter = InMemorySpanExporter()
        self.meter_provider = MeterProvider([self._reader], shutdown_on_exit=False)
        self.tracer_provider = TracerProvider(shutdown_on_exit=False)
        self.tracer_provider.add_span_processor(SimpleSpanProcessor(self._exporter))

    def metrics(self, loop: Any) -> dict[str, Any]:
        """The data point of a loop, by the metric's name."""
        data = self._reader.get_metrics_data()
        found = {}
        for resource in data.resource_metrics if data is not None else ():
            for scope in resource.scope_metrics:
                for metric in scope.metrics:
                    for point in metric.data.data_points:
                        if (point.attributes or {}).get("uringloop.loop") == loop._number:
                            found[metric.name] = point
        return found

    def spans(self) -> list[Any]:
        return list(self._exporter.get_finished_spans())


@pytest.fixture
def exported() -> Exported:
    return Exported()


def turn(loop: Any) -> None:
    loop.call_soon(loop.stop)
    loop.run_forever()


def use(exported: Exported, loop: Any = None, **options: Any) -> Any:
    return instrument(
        loop, meter_provider=exported.meter_provider, tracer_provider=exported.tracer_provider, **options
    )


def test_statistics_are_exported_and_cost_the_loop_nothing(loop: Any, exported: Exported) -> None:
    with use(exported, loop):
        turn(loop)
        found = exported.metrics(loop)
        assert loop.monitor is None
    statistics = loop.statistics()
    assert found["uringloop.loop.turns"].value == statistics.turns
    assert found["uringloop.loop.callbacks"].value == statistics.callbacks
    assert found["uringloop.loop.timers"].value == 0
    assert found["uringloop.loop.turns"].attributes["uringloop.engine"] == statistics.engine
    assert "uringloop.callback.duration" not in found
    assert exported.spans() == []


def test_durations_are_a_histogram_on_demand(loop: Any, exported: Exported) -> None:
    with use(exported, loop, callbacks=True, slow_seconds=3600):
        turn(loop)
        turn(loop)
        found = exported.metrics(loop)["uringloop.callback.duration"]
        assert found.count == 2
        assert found.sum > 0
        turn(loop)
        assert exported.metrics(loop)["uringloop.callback.duration"].count == 3
    assert exported.spans() == []


def test_slow_callbacks_are_spans(loop: Any, exported: Exported) -> None:
    async def dawdle() -> None: ...

    with use(exported, loop, callbacks=True, slow_seconds=0):
        loop.run_until_complete(loop.create_task(dawdle(), name="the task"))
    (span,) = (each for each in exported.spans() if "dawdle" in each.attributes["code.function.name"])
    assert span.name == "slow callback"
    assert span.attributes["uringloop.callback.detail"] == "the task"
    assert span.attributes["uringloop.loop"] == loop._number
    assert span.end_time >= span.start_time
    assert abs(span.start_time - time.time_ns()) < 3600 * 10**9  # the calendar's clock, not the loop's


def test_loops_made_later_are_exported_too(new_loop: Callable[..., Any], exported: Exported) -> None:
    with use(exported, callbacks=True):
        loop = new_loop()
        turn(loop)
        found = exported.metrics(loop)
        assert found["uringloop.loop.turns"].value == loop.statistics().turns
        assert found["uringloop.callback.duration"].count == 1
        loop.close()
        assert loop._number not in [
            point.attributes["uringloop.loop"]
            for name, point in exported.metrics(loop).items()
            if "turns" in name
        ]


def test_the_export_of_one_loop_excludes_others(new_loop: Callable[..., Any], exported: Exported) -> None:
    one, other = new_loop(), new_loop()
    with use(exported, one, callbacks=True):
        assert exported.metrics(one) and not exported.metrics(other)
        assert other.monitor is None


def test_an_ended_instrumentation_exports_nothing(loop: Any, exported: Exported) -> None:
    instrumentation = use(exported, loop, callbacks=True, slow_seconds=0)
    turn(loop)
    instrumentation.end()
    instrumentation.end()
    spans = len(exported.spans())
    with Observer(TIMES, loop):  # somebody else
        turn(loop)
    assert len(exported.spans()) == spans
    assert "uringloop.loop.turns" not in exported.metrics(loop)


def test_wrong_arguments_are_errors(loop: Any) -> None:
    with pytest.raises(ValueError, match="slow_seconds"):
        instrument(loop, slow_seconds=-1)
    loop.close()
    with pytest.raises(RuntimeError, match="closed"):
        instrument(loop)
