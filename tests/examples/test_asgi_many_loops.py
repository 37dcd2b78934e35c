import signal
import urllib.request

import pytest

from tests.examples.programs import port_of, running

pytest.importorskip("uvicorn", reason="uvicorn is one of `make integrations`")


def test_it_answers_from_its_loops() -> None:
    with running("asgi_many_loops.py", end=signal.SIGTERM) as output:
        place = f"http://127.0.0.1:{port_of(output)}/"
        for _ in range(20):
            with urllib.request.urlopen(place, timeout=30) as answer:
                assert answer.read() in (b"hello from web-0\n", b"hello from web-1\n")
