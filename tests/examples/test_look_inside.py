from tests.examples.programs import output_of


def test_it_shows_operations_and_a_count() -> None:
    *operations, turns, line = output_of("look_inside.py").splitlines()
    assert line == "a line"
    assert turns.endswith(" turns so far") and int(turns.split()[0]) > 0
    assert any("StreamTransport" in operation for operation in operations)
