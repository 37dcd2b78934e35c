import sys

from tests.examples.programs import output_of


def test_the_deadlock_and_the_lost_answer_are_found() -> None:
    counts = getattr(sys, "_is_gil_enabled", lambda: True)()
    found = ["deadlock back there", "unreachable request"]
    assert output_of("stuck.py").splitlines() == (found if counts else found[:1])
