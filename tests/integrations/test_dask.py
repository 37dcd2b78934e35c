import subprocess
import sys

import pytest

from tests.integrations.servers import PROJECT

pytest.importorskip("distributed", reason="one of `make integrations`")


def test_a_cluster_of_processes_with_loops_in_each() -> None:
    command = [sys.executable, str(PROJECT / "examples/dask_cluster.py")]
    run = subprocess.run(command, capture_output=True, text=True, timeout=100)
    assert run.stdout.splitlines() == [
        f"sum {sum(number * number for number in range(100))}",
        "processes 2",
        "the workers run on uringloop.loop",
    ], run.stderr
