import signal
import urllib.request

import pytest

from tests.examples.programs import port_of, running

pytest.importorskip("aiohttp", reason="aiohttp is one of `make integrations`")


def test_all_loops_count_the_same_visits() -> None:
    with running("web_many_loops.py", end=signal.SIGTERM) as output:
        place = f"http://127.0.0.1:{port_of(output)}/"
        for visit in range(1, 20):
            with urllib.request.urlopen(place, timeout=30) as answer:
                assert answer.read() == f"visit {visit}\n".encode()
