from tests.examples.programs import output_of


def test_stored_values_survive_a_restart() -> None:
    assert output_of("key_value.py") == "10 users, 445 visits\n"
