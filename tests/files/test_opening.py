"""open_file: io.open's arguments, checks, errors and what the file says of itself."""

from __future__ import annotations

import asyncio
import io
import os
import stat
from pathlib import Path
from typing import Any

import pytest

import uringloop
from tests.files.model import kind_of

WRONG: list[tuple[tuple[Any, ...], dict[str, Any]]] = [
    (("f", ""), {}),
    (("f", "b"), {}),
    (("f", "rw"), {}),
    (("f", "rr"), {}),
    (("f", "r++"), {}),
    (("f", "U"), {}),
    (("f", "rbt"), {}),
    (("f", "q"), {}),
    (("f", 5), {}),
    (("f", "rb"), {"encoding": "utf-8"}),
    (("f", "rb"), {"errors": "strict"}),
    (("f", "rb"), {"newline": ""}),
    (("f", "r", 0), {}),
    (("f", "r"), {"newline": "x"}),
    (("f", "r"), {"newline": 5}),
    (("f", "r"), {"encoding": "nonsense"}),
    (("f", "r"), {"encoding": "hex"}),
    (("f", "r"), {"closefd": False}),
    ((-1, "r"), {}),
    ((999, "rb"), {}),
    ((1.5, "r"), {}),
    ((None, "r"), {}),
    (("f\0", "r"), {}),
    (("no", "r"), {}),
    (("no/x", "w"), {}),
    (("f/x", "r"), {}),
    (("f", "x"), {}),
    ((".", "r"), {}),
    ((".", "rb"), {}),
    ((".", "w"), {}),
    (("loop", "r"), {}),
    (("x" * 300, "r"), {}),
]


@pytest.mark.parametrize(("arguments", "options"), WRONG)
def test_wrong_arguments_raise_the_errors_of_io_open(
    loop: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: Any, options: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("f").write_text("x")
    Path("loop").symlink_to("loop")

    async def main() -> None:
        async with uringloop.open_file(*arguments, **options):
            raise AssertionError("it opened")

    with pytest.raises(Exception) as expected:
        io.open(*arguments, **options)  # noqa: UP020, SIM115
    with pytest.raises(Exception) as got:
        loop.run_until_complete(main())
    assert kind_of(got.value) == kind_of(expected.value)
    if isinstance(expected.value, OSError):
        assert str(got.value) == str(expected.value)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_without_permission_raises_permission_error(loop: Any, tmp_path: Path) -> None:
    (tmp_path / "f").touch(0o000)

    async def main() -> None:
        with pytest.raises(PermissionError):
            await uringloop.open_file(tmp_path / "f")

    loop.run_until_complete(main())


@pytest.mark.parametrize(
    "mode", ["r", "w", "a", "x", "r+", "w+", "rb", "wb", "ab", "xb", "rb+", "wb+", "ab+", "r+b"]
)
@pytest.mark.parametrize("as_path", [str, Path, os.fsencode])
def test_a_file_has_the_attributes_of_a_file_of_io(
    loop: Any, tmp_path: Path, mode: str, as_path: Any
) -> None:
    path = tmp_path / "f"
    if "x" not in mode:
        path.write_text("abc")
    with io.open(as_path(path), mode) as model:  # noqa: UP020
        expected = (
            model.name,
            model.readable(),
            model.writable(),
            model.seekable(),
            model.isatty(),
            None if "b" in mode else (model.encoding, model.errors, model.newlines, model.line_buffering),
        )
        shown = model.mode
    if "x" in mode:
        path.unlink()

    async def main() -> None:
        async with uringloop.open_file(as_path(path), mode) as file:
            assert (
                file.name,
                file.readable(),
                file.writable(),
                file.seekable(),
                file.isatty(),
                None if "b" in mode else (file.encoding, file.errors, file.newlines, file.line_buffering),
            ) == expected
            assert file.mode == shown
            assert os.fstat(file.fileno()).st_ino == path.stat().st_ino
            assert not os.get_inheritable(file.fileno())
            assert not file.closed
            assert f"name={file.name!r}" in repr(file) and f"mode={shown!r}" in repr(file)
        assert file.closed
        await file.close()
        with pytest.raises(ValueError):
            file.fileno()
        for call in (file.read(), file.tell(), file.seek(0), file.flush(), file.readline(), file.fsync()):
            with pytest.raises(ValueError, match="closed file"):
                await call
        with pytest.raises(ValueError):
            async with file:
                pass

    loop.run_until_complete(main())


def test_open_file_can_be_awaited_or_entered(loop: Any, tmp_path: Path) -> None:
    async def main() -> None:
        file = await uringloop.open_file(tmp_path / "f", "w")
        async with file as same:
            assert same is file
            assert await file.write("x") == 1
        assert file.closed
        with pytest.raises(KeyError):
            async with uringloop.open_file(tmp_path / "f") as file:
                raise KeyError
        assert file.closed

    loop.run_until_complete(main())


def test_an_unclosed_file_is_flushed_and_emits_a_resource_warning(loop: Any, tmp_path: Path) -> None:
    async def main() -> None:
        file = await uringloop.open_file(tmp_path / "f", "w")
        await file.write("not lost")

    with pytest.warns(ResourceWarning, match="unclosed file"):
        loop.run_until_complete(main())
    assert (tmp_path / "f").read_text() == "not lost"


def test_open_file_obeys_permissions_opener_flags_and_resolve(loop: Any, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("/etc/passwd")
    seen = []

    def opener(path: str, flags: int) -> int:
        seen.append((path, flags))
        return os.open(tmp_path / path, flags)

    async def main() -> None:
        async with uringloop.open_file(tmp_path / "secret", "w", permissions=0o600):
            pass
        assert stat.S_IMODE((tmp_path / "secret").stat().st_mode) == 0o600
        async with uringloop.open_file("secret", "rb", opener=opener) as file:
            assert file.name == "secret"
        assert seen == [("secret", os.O_RDONLY | os.O_CLOEXEC)]
        with pytest.raises(OSError, match="Too many levels"):
            await uringloop.open_file(tmp_path / "link", flags=os.O_NOFOLLOW)
        folder = os.open(tmp_path, os.O_RDONLY)
        try:
            with pytest.raises(OSError, match="cross-device"):
                await uringloop.open_file("link", dir_fd=folder, resolve=0x08)  # RESOLVE_BENEATH
        finally:
            os.close(folder)

    loop.run_until_complete(main())


def test_line_buffering_in_binary_mode_emits_a_runtime_warning(tmp_path: Path) -> None:
    with pytest.warns(RuntimeWarning, match="line buffering"):
        uringloop.open_file(tmp_path / "f", "wb", 1)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "ascii"])
def test_data_that_cannot_be_decoded_or_encoded_raises(loop: Any, tmp_path: Path, encoding: str) -> None:
    path = tmp_path / "f"
    path.write_bytes(b"\xff\xfea\x00\xff\xdf\x80" * 10)

    async def main() -> None:
        with pytest.raises(UnicodeDecodeError):
            async with uringloop.open_file(path, encoding=encoding) as file:
                await file.read()
        async with uringloop.open_file(path, "w", encoding=encoding) as file:
            with pytest.raises(UnicodeEncodeError):
                await file.write("\ud800")
            with pytest.raises(TypeError, match=r"write\(\) argument must be str, not bytes"):
                await file.write(b"x")
        async with uringloop.open_file(path, "wb") as file:
            with pytest.raises(TypeError):
                await file.write("x")

    loop.run_until_complete(main())


def test_closing_the_loop_closes_no_file_of_the_program(new_loop: Any, tmp_path: Path) -> None:
    first = new_loop()
    file = first.run_until_complete(uringloop.open_file(tmp_path / "f", "w").__aenter__())
    first.run_until_complete(file.write("x"))
    first.close()
    second = new_loop()
    second.run_until_complete(file.close())
    assert (tmp_path / "f").read_text() == "x"


def test_many_files_can_be_opened_concurrently(loop: Any, tmp_path: Path) -> None:
    async def one(i: int) -> None:
        async with uringloop.open_file(tmp_path / str(i), "w+") as file:
            await file.write(str(i))
            await file.seek(0)
            assert await file.read() == str(i)

    async def main() -> None:
        await asyncio.gather(*(one(i) for i in range(100)))

    loop.run_until_complete(main())
