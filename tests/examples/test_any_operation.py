import pytest

from tests.examples.programs import output_of

pytest.importorskip("liburing", reason="python-liburing is an extra, of x86-64")


def test_it_does_what_it_says() -> None:
    assert output_of("any_operation.py").splitlines() == [
        "openat2: Invalid cross-device link",
        "waitid: the child ended with 0",
        "splice: moved, not copied",
    ]
