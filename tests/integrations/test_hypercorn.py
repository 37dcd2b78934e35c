import sys

import pytest

from tests.integrations.servers import OURS, PROJECT, answer_of

pytest.importorskip("hypercorn", reason="one of `make integrations`")


def test_its_serve_runs_under_our_runner() -> None:
    assert answer_of([sys.executable, str(PROJECT / "examples/hypercorn_app.py"), "0"]) == OURS
