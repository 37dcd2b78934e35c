import pytest

from tests.examples.programs import output_of

pytest.importorskip("liburing", reason="python-liburing is an extra, of x86-64")


def test_the_sync_waits_for_the_write() -> None:
    assert output_of("linked_write.py").splitlines() == [
        "written: 4 synced: True",
        "not synced: Bad file descriptor",
    ]
