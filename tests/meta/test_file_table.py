"""docs/files.md says which function of `fs` uses which operation of the ring, and which a thread: so they do."""

from __future__ import annotations

import os
import re
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

import uringloop
from uringloop import fs
from uringloop._core.awaitables.file_op import offers_ftruncate
from uringloop._core.engine.workers import Workers
from uringloop._core.kernel.probe import refusal
from uringloop.inspect.tracing import Tracing

PAGE = Path(__file__).resolve().parents[2] / "docs" / "files.md"
OPERATIONS = {
    "openat2", "close", "read", "write", "fsync", "ftruncate", "statx", "mkdirat", "unlinkat", "renameat", "linkat",
    "symlinkat", "splice",
}  # fmt: skip
SLOW = Path("/proc/self/stat")  # of a filesystem that nothing is known of, so nothing is done at once there


async def _walked(folder: Path) -> None:
    async for _ in fs.walk(folder):
        pass


async def _scanned(folder: Path) -> None:
    async for _ in fs.scandir(folder):
        pass


CALLS: dict[str, Callable[[Path], Awaitable[Any]]] = {
    "stat": lambda d: fs.stat(SLOW),
    "lstat": lambda d: fs.lstat(SLOW),
    "exists": lambda d: fs.exists(SLOW),
    "is_file": lambda d: fs.is_file(SLOW),
    "is_dir": lambda d: fs.is_dir(SLOW),
    "mkdir": lambda d: fs.mkdir(d / "new"),
    "makedirs": lambda d: fs.makedirs(d / "new"),
    "unlink": lambda d: fs.unlink(d / "f"),
    "remove": lambda d: fs.remove(d / "f"),
    "rmdir": lambda d: fs.rmdir(d / "empty"),
    "rename": lambda d: fs.rename(d / "f", d / "g"),
    "replace": lambda d: fs.replace(d / "f", d / "g"),
    "link": lambda d: fs.link(d / "f", d / "g"),
    "symlink": lambda d: fs.symlink("f", d / "g"),
    "truncate": lambda d: fs.truncate(d / "f", 1),
    "read_bytes": lambda d: fs.read_bytes(SLOW),
    "read_text": lambda d: fs.read_text(SLOW),
    "write_bytes": lambda d: fs.write_bytes(d / "f", b"x"),
    "write_text": lambda d: fs.write_text(d / "f", "x"),
    "atomic_write": lambda d: fs.atomic_write(d / "f", b"x"),
    "copyfile": lambda d: fs.copyfile(d / "f", d / "g"),
    "readlink": lambda d: fs.readlink(d / "link"),
    "access": lambda d: fs.access(d / "f", os.R_OK),
    "chmod": lambda d: fs.chmod(d / "f", 0o600),
    "utime": lambda d: fs.utime(d / "f"),
    "listdir": lambda d: fs.listdir(d),
    "scandir": _scanned,
    "walk": _walked,
    "rmtree": lambda d: fs.rmtree(d / "empty"),
}


def rows() -> dict[str, tuple[set[str], set[str], bool]]:
    """By function: the operations it always uses, those it uses now and then, and whether a thread."""
    found = {}
    for line in PAGE.read_text().splitlines():
        if line.startswith("| `fs."):
            names, _, ring, thread = (cell.strip() for cell in line.strip("|").split("|"))
            always, sometimes = re.sub(r"\(.*?\)", "", ring), " ".join(re.findall(r"\(.*?\)", ring))
            for name in re.findall(r"`(?:fs\.)?(\w+)`", names):
                words = (OPERATIONS & set(re.findall(r"\w+", text)) for text in (always, sometimes))
                found[name] = (*words, bool(re.sub(r"\(.*?\)", "", thread).strip()))
    return found


def test_every_function_is_in_the_table() -> None:
    assert set(rows()) == set(fs.__all__) == set(CALLS)


@pytest.mark.skipif(refusal() is not None, reason="io_uring is refused here")
@pytest.mark.parametrize("name", sorted(CALLS))
def test_file_operations_use_the_means_in_the_table(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "f").write_bytes(b"content")
    (tmp_path / "empty").mkdir()
    (tmp_path / "link").symlink_to("f")
    threads = 0
    submit = Workers.submit

    def counted(self: Workers, *args: Any, **kwargs: Any) -> Any:
        nonlocal threads
        threads += 1
        return submit(self, *args, **kwargs)

    monkeypatch.setattr(Workers, "submit", counted)
    loop = uringloop.new_event_loop(engine="uring")
    try:
        if name == "truncate" and not offers_ftruncate(loop):
            pytest.skip("this kernel's ring has no ftruncate")
        with Tracing(loop) as tracing:
            loop.run_until_complete(CALLS[name](tmp_path))
        shown = str([event.get("name") for event in tracing.document()["traceEvents"] if event["ph"] == "b"])
        used = set(re.findall(r"FileOp (\w+)", shown))
    finally:
        loop.close()
    always, sometimes, in_thread = rows()[name]
    assert always <= used <= always | sometimes
    assert (threads > 0) == in_thread
