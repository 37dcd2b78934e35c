import pytest

from tests.examples.programs import output_of

pytest.importorskip("liburing", reason="python-liburing is an extra, of x86-64")


def test_a_durable_write_succeeds_or_reports_the_error() -> None:
    assert output_of("durable_write.py").splitlines() == [
        "4 bytes are on the disk",
        "not written, and no fsync: Bad file descriptor",
    ]
