import re

from tests.examples.programs import output_of


def test_no_more_than_three_at_a_time() -> None:
    found = re.fullmatch(r"100 answers, at most (\d) requests at a time\n", output_of("rate_limit.py"))
    assert found and 1 <= int(found[1]) <= 3
