import pytest

from tests.examples.programs import output_of

pytest.importorskip("liburing", reason="python-liburing is an extra, of x86-64")


def test_the_waiter_is_woken() -> None:
    assert sorted(output_of("futex.py").splitlines()) == ["woke 1", "woken, the word is 1"]
