import pytest

from tests.examples.programs import output_of

pytest.importorskip("liburing", reason="python-liburing is an extra, of x86-64")


def test_each_operation_completes() -> None:
    assert output_of("ops_tour.py").splitlines() == [
        "more than nothing: True",
        "written: 5 6",
        "readable: True b'hello again'",
    ]
