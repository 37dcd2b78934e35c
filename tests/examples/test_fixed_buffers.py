from tests.examples.programs import output_of


def test_a_part_of_what_was_read_is_written_elsewhere() -> None:
    assert output_of("fixed_buffers.py").splitlines() == ["65536 bytes read", "first is in two places"]
