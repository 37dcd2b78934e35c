from tests.examples.programs import output_of


def test_each_prints_its_square() -> None:
    assert output_of("subprocesses.py") == "0 1 4 9 16 25\n"
