"""Binary files: io's own are the model."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.files.model import blobs, compare, steps

CONTENTS = st.one_of(
    st.binary(max_size=200),
    blobs,
    st.builds(lambda n: b"".join(b"%d\n" % i for i in range(n)), st.sampled_from([10, 3000, 20000])),
)
quick = settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


@pytest.mark.parametrize("mode", ["rb", "wb", "ab", "xb", "rb+", "wb+", "ab+", "xb+"])
@pytest.mark.parametrize("buffering", [-1, 100])
def test_any_sequence_of_operations_is_as_ios(loop: Any, mode: str, buffering: int) -> None:
    @quick
    @given(content=CONTENTS, todo=steps)
    def check(content: bytes, todo: list[Any]) -> None:
        with tempfile.TemporaryDirectory() as folder:
            loop.run_until_complete(compare(Path(folder), content, mode, todo, buffering=buffering))

    check()
