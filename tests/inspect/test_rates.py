from __future__ import annotations

from typing import Any

import pytest

from uringloop.inspect.rates import rates


def picture(time: float, *loops: dict[str, Any]) -> dict[str, Any]:
    return {"time": time, "loops": list(loops)}


def loop(number: int, turns: int, slept: float | None, state: str = "running") -> dict[str, Any]:
    names = ("turns", "callbacks", "submitted", "system_calls")
    return {
        "number": number,
        "state": state,
        "statistics": dict.fromkeys(names, turns),
        "slept_seconds": slept,
        "cpu_seconds": turns / 1000,
    }


def test_counters_become_rates_and_sleep_its_opposite() -> None:
    found = rates(picture(10.0, loop(1, 100, 5.0)), picture(12.0, loop(1, 300, 6.5)))
    assert (found[1].turns, found[1].callbacks, found[1].busy) == (100.0, 100.0, 0.25)
    assert found[1].cpu == pytest.approx(0.1)


@pytest.mark.parametrize(
    ("slept", "expected"), [(5.0, 1.0), (7.0, 0.0), (7.1, 0.0), (4.0, 1.0), (None, None)]
)
def test_busy_is_a_fraction_or_unknown(slept: float | None, expected: float | None) -> None:
    found = rates(picture(10.0, loop(1, 0, 5.0)), picture(12.0, loop(1, 0, slept)))
    assert found[1].busy == expected


def test_a_loop_that_does_not_run_is_not_busy() -> None:
    found = rates(picture(10.0, loop(1, 0, 5.0)), picture(12.0, loop(1, 0, 5.0, "stopped")))
    assert found[1].busy == 0.0


def test_new_and_closed_loops_have_no_rates() -> None:
    found = rates(picture(10.0, loop(1, 0, 5.0)), picture(12.0, loop(2, 0, 5.0)))
    assert found == {}


def test_two_snapshots_at_the_same_time_divide_by_nothing() -> None:
    same = picture(10.0, loop(1, 0, 5.0))
    assert rates(same, same)[1].turns == 0.0
