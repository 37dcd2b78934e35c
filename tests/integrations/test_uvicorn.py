import pytest

from tests.integrations.servers import OURS, answer_of, documented

pytest.importorskip("uvicorn", reason="one of `make integrations`")


def test_the_loop_option_takes_our_factory() -> None:
    assert answer_of([*documented("uvicorn --loop"), "--host", "127.0.0.1", "--port", "0"]) == OURS
