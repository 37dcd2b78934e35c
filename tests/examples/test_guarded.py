from tests.examples.programs import output_of


def test_every_payment_counts() -> None:
    assert output_of("guarded.py") == "balance 200\n"
