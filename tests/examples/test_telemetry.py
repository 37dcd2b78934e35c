import pytest

from tests.examples.programs import output_of


def test_it_exports_metrics_and_a_span() -> None:
    pytest.importorskip("opentelemetry.sdk", reason="the extra inspect-test is not installed")
    lines = output_of("telemetry.py").splitlines()
    assert "uringloop.loop.turns" in lines and "uringloop.callback.duration" in lines
    assert lines[-1] == "slow callback think_hard" or "slow callback think_hard" in lines
