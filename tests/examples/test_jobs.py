from tests.examples.programs import output_of


def test_each_request_is_handled_on_a_loop_of_the_scheduler() -> None:
    said = output_of("jobs.py").splitlines()
    assert said == [f"request {number} on a loop of work" for number in range(1, 7)]
