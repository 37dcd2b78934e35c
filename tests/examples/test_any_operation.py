import pytest

from tests.examples.programs import output_of

pytest.importorskip("liburing", reason="python-liburing is an extra, of x86-64")


def test_the_operations_give_the_documented_results() -> None:
    assert output_of("any_operation.py").splitlines() == [
        "openat2: Invalid cross-device link",
        "waitid: the child ended with 0",
        "splice: moved, not copied",
    ]
