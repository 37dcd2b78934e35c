from tests.examples.programs import output_of


def test_every_number_comes_through() -> None:
    assert output_of("pipeline.py") == "sum of squares 332833500\n"
