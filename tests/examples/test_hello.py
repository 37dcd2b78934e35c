from tests.examples.programs import output_of


def test_it_runs_on_uringloop() -> None:
    assert output_of("hello.py") == "hello from uringloop.loop\n"
