from tests.examples.programs import output_of


def test_no_money_is_lost() -> None:
    assert output_of("bank.py") == "balance 15050\n"
