from tests.examples.programs import output_of


def test_every_record_is_on_the_disk() -> None:
    assert output_of("journal.py") == "20 records\n"
