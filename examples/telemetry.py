"""OpenTelemetry: the metrics of all loops, the duration of their callbacks, and a span for each slow one."""

import asyncio
import time

from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

import uringloop
from uringloop.inspect.opentelemetry import instrument


async def think_hard() -> None:
    time.sleep(0.2)  # a mistake: nothing else runs meanwhile


def main() -> None:
    # A program that exports has set its providers up already, and says instrument() alone.
    reader, exporter = InMemoryMetricReader(), InMemorySpanExporter()
    tracers = TracerProvider()
    tracers.add_span_processor(SimpleSpanProcessor(exporter))
    meters = MeterProvider([reader])

    async def work() -> None:
        await asyncio.create_task(think_hard())
        data = reader.get_metrics_data()
        assert data is not None
        for metric in data.resource_metrics[0].scope_metrics[0].metrics:
            print(metric.name)

    with instrument(callbacks=True, slow_seconds=0.1, meter_provider=meters, tracer_provider=tracers):
        uringloop.run(work())
    for span in exporter.get_finished_spans():
        print(span.name, (span.attributes or {})["code.function.name"])


if __name__ == "__main__":
    main()
