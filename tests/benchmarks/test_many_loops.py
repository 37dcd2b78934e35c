"""The rows of a port that several loops serve."""

import pytest

from benchmarks import many_loops
from benchmarks.candidate import candidate_named
from benchmarks.many_loops import cost_of_connection, measure_served, served_rows
from benchmarks.row import Failed, Skipped


@pytest.mark.parametrize(("processes", "loops"), [(1, 2), (2, 1)])
def test_connections_to_loops_and_to_processes_cost_processor_time(processes: int, loops: int) -> None:
    try:
        assert cost_of_connection(processes, loops, 0.05, 20) > 0
    except Skipped as reason:
        pytest.skip(str(reason))


def test_the_row_compares_with_one_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    costs = {(1, 1): 30.0, (1, 4): 40.0, (4, 1): 60.0}
    monkeypatch.setattr(many_loops, "cost_of_connection", lambda *which: costs[which[:2]])
    row = next(row for row in served_rows() if row.name == "served-4")
    found = measure_served(row, candidate_named("uringloop"), 0.1)
    assert found == {"loops": 0.75, "processes": 0.5, "cpu": 40.0}


def test_a_server_that_does_not_start_fails_the_row(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(many_loops.sys, "executable", "false")
    with pytest.raises(Failed, match="did not start"):
        cost_of_connection(1, 1, 0.05, 20)
