"""Operations on paths: the os module is the model, for results, effects and errors."""

from __future__ import annotations

import asyncio
import os
import shutil
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import uringloop
from uringloop import fs

# Each on two equal folders: how os does it, and how we do.
SAME: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "mkdir": (lambda d: os.mkdir(d / "new", 0o750), lambda d: fs.mkdir(d / "new", 0o750)),
    "mkdir again": (lambda d: os.mkdir(d / "sub"), lambda d: fs.mkdir(d / "sub")),
    "mkdir nowhere": (lambda d: os.mkdir(d / "no" / "x"), lambda d: fs.mkdir(d / "no" / "x")),
    "makedirs": (lambda d: os.makedirs(d / "p/q/r"), lambda d: fs.makedirs(d / "p/q/r")),
    "makedirs exist": (lambda d: os.makedirs(d / "sub"), lambda d: fs.makedirs(d / "sub")),
    "makedirs exist_ok": (
        lambda d: os.makedirs(d / "sub", exist_ok=True),
        lambda d: fs.makedirs(d / "sub", exist_ok=True),
    ),
    "makedirs below a file": (lambda d: os.makedirs(d / "a/b"), lambda d: fs.makedirs(d / "a/b")),
    "unlink": (lambda d: os.unlink(d / "a"), lambda d: fs.unlink(d / "a")),
    "unlink nothing": (lambda d: os.unlink(d / "no"), lambda d: fs.unlink(d / "no")),
    "unlink a folder": (lambda d: os.unlink(d / "sub"), lambda d: fs.unlink(d / "sub")),
    "remove a link": (lambda d: os.remove(d / "link"), lambda d: fs.remove(d / "link")),
    "rmdir": (lambda d: os.rmdir(d / "empty"), lambda d: fs.rmdir(d / "empty")),
    "rmdir full": (lambda d: os.rmdir(d / "sub"), lambda d: fs.rmdir(d / "sub")),
    "rename": (lambda d: os.rename(d / "a", d / "z"), lambda d: fs.rename(d / "a", d / "z")),
    "rename nothing": (lambda d: os.rename(d / "no", d / "z"), lambda d: fs.rename(d / "no", d / "z")),
    "replace": (lambda d: os.replace(d / "a", d / "b"), lambda d: fs.replace(d / "a", d / "b")),
    "replace a folder": (lambda d: os.replace(d / "a", d / "sub"), lambda d: fs.replace(d / "a", d / "sub")),
    "link": (lambda d: os.link(d / "a", d / "z"), lambda d: fs.link(d / "a", d / "z")),
    "link a link": (
        lambda d: os.link(d / "link", d / "z", follow_symlinks=False),
        lambda d: fs.link(d / "link", d / "z", follow_symlinks=False),
    ),
    "link exists": (lambda d: os.link(d / "a", d / "b"), lambda d: fs.link(d / "a", d / "b")),
    "symlink": (lambda d: os.symlink("a", d / "z"), lambda d: fs.symlink("a", d / "z")),
    "symlink exists": (lambda d: os.symlink("a", d / "b"), lambda d: fs.symlink("a", d / "b")),
    "readlink": (lambda d: os.readlink(d / "link"), lambda d: fs.readlink(d / "link")),
    "readlink of a file": (lambda d: os.readlink(d / "a"), lambda d: fs.readlink(d / "a")),
    "truncate": (lambda d: os.truncate(d / "a", 2), lambda d: fs.truncate(d / "a", 2)),
    "truncate longer": (lambda d: os.truncate(d / "a", 99), lambda d: fs.truncate(d / "a", 99)),
    "truncate nothing": (lambda d: os.truncate(d / "no", 2), lambda d: fs.truncate(d / "no", 2)),
    "truncate below zero": (lambda d: os.truncate(d / "a", -1), lambda d: fs.truncate(d / "a", -1)),
    "utime": (lambda d: os.utime(d / "a", (1, 2)), lambda d: fs.utime(d / "a", (1, 2))),
    "chmod": (lambda d: os.chmod(d / "a", 0o600), lambda d: fs.chmod(d / "a", 0o600)),
    "chmod nothing": (lambda d: os.chmod(d / "no", 0o600), lambda d: fs.chmod(d / "no", 0o600)),
    "access": (lambda d: os.access(d / "a", os.R_OK), lambda d: fs.access(d / "a", os.R_OK)),
    "exists": (lambda d: os.path.exists(d / "a"), lambda d: fs.exists(d / "a")),
    "exists not": (lambda d: os.path.exists(d / "no"), lambda d: fs.exists(d / "no")),
    "exists dangling": (lambda d: os.path.exists(d / "dangling"), lambda d: fs.exists(d / "dangling")),
    "is_file": (lambda d: os.path.isfile(d / "a"), lambda d: fs.is_file(d / "a")),
    "is_dir": (lambda d: os.path.isdir(d / "a"), lambda d: fs.is_dir(d / "a")),
    "listdir": (lambda d: sorted(os.listdir(d)), lambda d: _sorted(fs.listdir(d))),
    "listdir nothing": (lambda d: os.listdir(d / "no"), lambda d: fs.listdir(d / "no")),
    "rmtree": (lambda d: shutil.rmtree(d / "sub"), lambda d: fs.rmtree(d / "sub")),
    "rmtree nothing": (lambda d: shutil.rmtree(d / "no"), lambda d: fs.rmtree(d / "no")),
    "copyfile": (
        lambda d: shutil.copyfile(d / "a", d / "z").name,
        lambda d: _name(fs.copyfile(d / "a", d / "z")),
    ),
    "copyfile over": (
        lambda d: shutil.copyfile(d / "a", d / "b").name,
        lambda d: _name(fs.copyfile(d / "a", d / "b")),
    ),
    "copyfile same": (lambda d: shutil.copyfile(d / "a", d / "a"), lambda d: fs.copyfile(d / "a", d / "a")),
    "copyfile a link": (
        lambda d: shutil.copyfile(d / "link", d / "z", follow_symlinks=False).name,
        lambda d: _name(fs.copyfile(d / "link", d / "z", follow_symlinks=False)),
    ),
    "read_bytes": (lambda d: (d / "a").read_bytes(), lambda d: fs.read_bytes(d / "a")),
    "read_bytes nothing": (lambda d: (d / "no").read_bytes(), lambda d: fs.read_bytes(d / "no")),
    "read_bytes of a folder": (lambda d: (d / "sub").read_bytes(), lambda d: fs.read_bytes(d / "sub")),
    "read_text": (lambda d: (d / "a").read_text("utf-8"), lambda d: fs.read_text(d / "a", "utf-8")),
    "write_bytes": (lambda d: (d / "z").write_bytes(b"xyz"), lambda d: fs.write_bytes(d / "z", b"xyz")),
    "write_text": (
        lambda d: (d / "a").write_text("é", "utf-8"),
        lambda d: fs.write_text(d / "a", "é", "utf-8"),
    ),
    "write_text bytes": (lambda d: (d / "a").write_text(b"x"), lambda d: fs.write_text(d / "a", b"x")),  # type: ignore[arg-type]
    "null byte": (lambda d: os.unlink(f"{d}/a\0"), lambda d: fs.unlink(f"{d}/a\0")),
    "bytes": (lambda d: os.unlink(os.fsencode(d / "no")), lambda d: fs.unlink(os.fsencode(d / "no"))),
}


async def _sorted(listing: Any) -> Any:
    return sorted(await listing)


async def _name(path: Any) -> Any:
    return (await path).name


def furnish(folder: Path) -> Path:
    folder.mkdir()
    (folder / "a").write_text("content of a\n")
    (folder / "b").write_text("b")
    for sub in ("sub", "empty", "sub/deep"):
        (folder / sub).mkdir()
    (folder / "sub" / "f").write_text("f")
    (folder / "link").symlink_to("a")
    (folder / "dangling").symlink_to("nowhere")
    return folder


def picture(folder: Path) -> dict[str, Any]:
    """What is in it, as far as two folders can be the same."""
    found = {}
    for path in sorted(folder.rglob("*")):
        s = path.lstat()
        content = os.readlink(path) if path.is_symlink() else path.read_bytes() if path.is_file() else None
        found[str(path.relative_to(folder))] = (
            s.st_mode,
            s.st_nlink,
            s.st_mtime if s.st_mtime < 10 else 0,
            content,
        )
    return found


def outcome(folder: Path, result: Any) -> Any:
    if not isinstance(result, BaseException):
        return result

    def shown(name: Any) -> Any:
        return None if name is None else (type(name), os.fsdecode(name).replace(str(folder), ""))

    if isinstance(result, OSError) and not isinstance(result, shutil.Error):
        return type(result), result.errno, shown(result.filename), shown(result.filename2), result.strerror
    # What the os module says of a null byte is another thing in each version.
    return type(result), None if isinstance(result, ValueError) else str(result).replace(str(folder), "")


@pytest.mark.parametrize("what", SAME)
def test_functions_have_the_results_of_the_os_module(loop: Any, tmp_path: Path, what: str) -> None:
    theirs, ours = furnish(tmp_path / "theirs"), furnish(tmp_path / "ours")
    model, function = SAME[what]

    async def main() -> Any:
        return await function(ours)

    try:
        expected = model(theirs)
    except Exception as error:
        expected = error
    try:
        got = loop.run_until_complete(main())
    except Exception as error:
        got = error
    assert outcome(ours, got) == outcome(theirs, expected)
    assert picture(ours) == picture(theirs)


@pytest.mark.parametrize(
    "name", ["a", "sub", "link", "dangling", "no", "/dev/null", "/proc/self/maps", "/dev/shm"]
)
@pytest.mark.parametrize("follow", [True, False])
def test_stat_has_the_results_of_os_stat(loop: Any, tmp_path: Path, name: str, follow: bool) -> None:
    folder = furnish(tmp_path / "d")
    try:
        expected: Any = os.stat(folder / name, follow_symlinks=follow)
    except OSError as error:
        expected = error

    async def main() -> Any:
        return await fs.stat(folder / name, follow_symlinks=follow)

    try:
        got = loop.run_until_complete(main())
    except OSError as error:
        got = error
    if isinstance(expected, OSError):
        assert outcome(folder, got) == outcome(folder, expected)
        return
    fields = [field for field in dir(expected) if field.startswith("st_") and "time" not in field]
    assert {f: getattr(got, f) for f in fields} == {f: getattr(expected, f) for f in fields}
    assert tuple(got) == tuple(expected)
    assert (got.st_mtime, got.st_mtime_ns, got.st_ctime_ns) == (
        expected.st_mtime,
        expected.st_mtime_ns,
        expected.st_ctime_ns,
    )


def test_functions_accept_paths_relative_to_dir_fd(loop: Any, tmp_path: Path) -> None:
    folder = furnish(tmp_path / "d")
    fd = os.open(folder, os.O_RDONLY)

    async def main() -> None:
        assert (await fs.stat("a", dir_fd=fd)).st_size == 13
        assert (await fs.stat(fd)).st_ino == folder.stat().st_ino
        await fs.mkdir("n", dir_fd=fd)
        await fs.rename("a", "n/a", src_dir_fd=fd, dst_dir_fd=fd)
        async with uringloop.open_file("n/a", dir_fd=fd) as file:
            assert await file.read() == "content of a\n"
        await fs.unlink("n/a", dir_fd=fd)
        await fs.rmdir("n", dir_fd=fd)
        await fs.symlink("b", "s", dir_fd=fd)
        assert await fs.readlink("s", dir_fd=fd) == "b"
        with pytest.raises(FileNotFoundError) as raised:
            await fs.stat("no", dir_fd=fd)
        assert raised.value.filename == "no"

    try:
        loop.run_until_complete(main())
    finally:
        os.close(fd)


@pytest.mark.parametrize("topdown", [True, False])
@pytest.mark.parametrize("followlinks", [True, False])
def test_walk_yields_what_os_walk_yields(loop: Any, tmp_path: Path, topdown: bool, followlinks: bool) -> None:
    folder = furnish(tmp_path / "d")
    (folder / "again").symlink_to("sub")
    key = {"topdown": topdown, "followlinks": followlinks}

    async def main() -> Any:
        return [found async for found in fs.walk(folder, **key)]

    assert loop.run_until_complete(main()) == list(os.walk(folder, **key))


def test_walk_skips_removed_folders_and_passes_errors_to_onerror(loop: Any, tmp_path: Path) -> None:
    folder = furnish(tmp_path / "d")
    errors: list[OSError] = []

    async def main() -> None:
        seen = []
        async for top, folders, _ in fs.walk(folder):
            seen.append(Path(top).name)
            if "sub" in folders:
                folders.remove("sub")
        assert sorted(seen) == ["d", "empty"]
        assert [x async for x in fs.walk(folder / "no", onerror=errors.append)] == []
        assert [x async for x in fs.walk(folder / "no")] == []

    loop.run_until_complete(main())
    assert [type(error) for error in errors] == [FileNotFoundError]


def test_scandir_yields_all_entries_of_a_folder(loop: Any, tmp_path: Path) -> None:
    for i in range(600):
        (tmp_path / str(i)).touch()

    async def main() -> None:
        names = {entry.name async for entry in fs.scandir(tmp_path)}
        assert names == {str(i) for i in range(600)}
        async with fs.scandir(tmp_path) as entries:
            async for entry in entries:
                assert entry.is_file()
                break
        with pytest.raises(FileNotFoundError):
            async for _ in fs.scandir(tmp_path / "no"):
                pass

    loop.run_until_complete(main())


def test_atomic_write_replaces_the_file_or_leaves_it(loop: Any, tmp_path: Path) -> None:
    path = tmp_path / "settings"

    async def main() -> None:
        await fs.atomic_write(path, "first")
        await fs.atomic_write(path, b"second", permissions=0o600)
        assert path.read_bytes() == b"second"
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        with pytest.raises(TypeError):
            await fs.atomic_write(path, 5)
        task = asyncio.ensure_future(fs.atomic_write(path, b"x" * 1_000_000, sync=False))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert path.read_bytes() == b"second"
        with pytest.raises(FileNotFoundError):
            await fs.atomic_write(tmp_path / "no" / "x", b"")
        with pytest.raises(IsADirectoryError):
            await fs.atomic_write(tmp_path, b"")

    loop.run_until_complete(main())
    assert os.listdir(tmp_path) == ["settings"]


def test_functions_refuse_other_event_loops() -> None:
    with pytest.raises(RuntimeError, match="uringloop's event loop only"):
        asyncio.run(fs.stat("/"))
