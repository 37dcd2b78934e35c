import pytest

from tests.examples.programs import output_of

pytest.importorskip("anyio", reason="one of `make integrations`")


def test_its_loop_factory_may_be_ours() -> None:
    assert output_of("anyio_program.py") == "uringloop.loop\n"
