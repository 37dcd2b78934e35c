"""What aiofiles leaves to an executor runs in the one it was given; whatever fails, nothing is left open."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from uringloop import aiofiles_compat as aiofiles


@pytest.fixture
def executor() -> Any:
    with ThreadPoolExecutor(1, "given") as made:
        yield made


def test_the_executor_that_is_given(loop: Any, executor: Any, tmp_path: Path) -> None:
    def where(*_: object) -> str:
        return threading.current_thread().name

    async def main() -> None:
        assert (await aiofiles.os.wrap(where)(executor=executor)).startswith("given")
        async with aiofiles.tempfile.SpooledTemporaryFile(mode="w", executor=executor) as spooled:
            spooled._file.write = where
            assert (await spooled.write("x")).startswith("given")
        with open(tmp_path / "f", "w") as file:
            wrapped = aiofiles.threadpool.wrap(file, executor=executor)
            await wrapped.write("x")
            await wrapped.flush()
        async with aiofiles.tempfile.NamedTemporaryFile("w", dir=tmp_path, executor=executor) as named:
            await named.write("x")
        async with aiofiles.tempfile.TemporaryDirectory(dir=tmp_path, executor=executor) as folder:
            assert Path(folder).is_dir()
        assert len(executor._threads) == 1

    loop.run_until_complete(main())
    assert [path.name for path in tmp_path.iterdir()] == ["f"]


@pytest.mark.parametrize("wrong", [{"mode": "q"}, {"mode": "w", "encoding": "no such"}])
def test_a_wrong_argument_leaves_nothing_open(loop: Any, tmp_path: Path, wrong: Any) -> None:
    async def main() -> None:
        for make in (aiofiles.tempfile.NamedTemporaryFile, aiofiles.tempfile.TemporaryFile):
            with pytest.raises((ValueError, LookupError)):
                async with make(dir=tmp_path, **wrong):
                    pass

    loop.run_until_complete(main())
    loop.close()
    assert list(tmp_path.iterdir()) == []
