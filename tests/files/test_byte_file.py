"""Binary files: io's own are the model."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import uringloop
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
def test_any_sequence_of_operations_has_the_results_of_io(loop: Any, mode: str, buffering: int) -> None:
    @quick
    @given(content=CONTENTS, todo=steps)
    def check(content: bytes, todo: list[Any]) -> None:
        with tempfile.TemporaryDirectory() as folder:
            loop.run_until_complete(compare(Path(folder), content, mode, todo, buffering=buffering))

    check()


def test_appends_of_several_tasks_do_not_mix(loop: Any, tmp_path: Path) -> None:
    path = tmp_path / "log"

    async def writer(mark: int) -> None:
        async with uringloop.open_file(path, "ab", buffering=0) as file:
            for i in range(12):
                line = b"%d" % mark * (1000 * i + 1)
                assert await file.write(line + b"\n") == len(line) + 1

    async def collector(mark: int) -> None:
        async with uringloop.open_file(path, "a") as file:
            for _ in range(12):
                await file.write(str(mark) * 500 + "\n")
                await file.flush()
                assert await file.tell() <= path.stat().st_size

    async def main() -> None:
        await asyncio.gather(*(writer(i) for i in range(5)), *(collector(i) for i in range(5, 10)))

    loop.run_until_complete(main())
    lines = path.read_bytes().splitlines()
    assert all(len(set(line)) == 1 for line in lines)
    assert sorted(map(len, lines)) == sorted([1000 * i + 1 for i in range(12)] * 5 + [500] * 60)
