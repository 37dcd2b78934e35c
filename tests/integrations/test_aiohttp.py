import sys

import pytest

from tests.integrations.servers import OURS, PROJECT, answer_of

pytest.importorskip("aiohttp", reason="one of `make integrations`")


def test_run_app_takes_our_loop() -> None:
    assert answer_of([sys.executable, str(PROJECT / "examples/aiohttp_app.py"), "0"]) == OURS
