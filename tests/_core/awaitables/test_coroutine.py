"""The protocol that all coroutines of the core share, whatever their objects are."""

from __future__ import annotations

import asyncio
import socket
import sys
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

import uringloop

Make = Callable[[], Coroutine[Any, Any, Any]]


# The plain path of a stream's read is asyncio's coroutine.
READ = pytest.param("a stream's read", marks=pytest.mark.relies_on("adopted_streams"))


@pytest.fixture(params=["an operation", READ, "a file's method"])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def with_coroutines(loop: Any, tmp_path: Path, kind: str, use: Callable[[Make], None]) -> None:
    """Calls `use` on the running loop, with what makes coroutines of that kind."""
    (tmp_path / "file").write_bytes(b"content")

    async def main() -> None:
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        theirs.send(b"!" + b"content" * 3)
        if kind == "an operation":
            ours.recv(1)
            use(lambda: loop.sock_recv(ours, 7))
        elif kind == "a stream's read":
            reader, writer = await asyncio.open_connection(sock=ours)
            await reader.readexactly(1)
            use(lambda: reader.read(7))
            writer.close()
        else:
            async with uringloop.open_file(tmp_path / "file", "rb") as file:
                use(lambda: file.pread(7, 0))
        ours.close()
        theirs.close()

    loop.run_until_complete(main())


def result_of(coroutine: Coroutine[Any, Any, Any]) -> Any:
    try:
        coroutine.send(None)
    except StopIteration as stop:
        return stop.value
    raise AssertionError("it waits")


def test_the_caller_owns_the_only_reference_to_the_result(loop: Any, tmp_path: Path, kind: str) -> None:
    def use(make: Make) -> None:
        results = [result_of(make()) for _ in range(3)]
        assert results == [b"content"] * 3
        own = [bytes(bytearray(b"content")) for _ in range(3)]
        assert [sys.getrefcount(result) for result in results] == [sys.getrefcount(result) for result in own]

    with_coroutines(loop, tmp_path, kind, use)


def test_the_first_value_sent_is_none(loop: Any, tmp_path: Path, kind: str) -> None:
    def use(make: Make) -> None:
        coroutine = make()
        with pytest.raises(TypeError, match="just-started"):
            coroutine.send(1)
        coroutine.close()

    with_coroutines(loop, tmp_path, kind, use)


def test_a_coroutine_can_be_awaited_only_once(loop: Any, tmp_path: Path, kind: str) -> None:
    def use(make: Make) -> None:
        coroutine = make()
        with pytest.raises(KeyError, match="x"):
            coroutine.throw(KeyError("x"))
        for again in (
            lambda: coroutine.send(None),
            lambda: coroutine.throw(KeyError("x")),
            lambda: next(coroutine),  # type: ignore[call-overload]
            coroutine.__await__,
        ):
            with pytest.raises(RuntimeError, match="cannot reuse already awaited coroutine"):
                again()
        coroutine.close()
        coroutine.close()

    with_coroutines(loop, tmp_path, kind, use)


def test_its_methods_take_no_other_object(loop: Any, tmp_path: Path, kind: str) -> None:
    def use(make: Make) -> None:
        coroutine = make()
        methods: Any = type(coroutine)
        for call in (
            lambda: methods.send(1, None),
            lambda: methods.throw("x", KeyError),
            lambda: methods.close(None),
            lambda: methods.__await__(object()),
        ):
            with pytest.raises(TypeError, match="a coroutine of uringloop is required"):
                call()
        coroutine.close()

    with_coroutines(loop, tmp_path, kind, use)


def test_coroutines_have_the_names_of_their_functions(loop: Any, tmp_path: Path, kind: str) -> None:
    names = {"an operation": "SockRecv", "a stream's read": "StreamReader.read", "a file's method": "Call"}

    def use(make: Make) -> None:
        coroutine: Any = make()
        assert coroutine.__qualname__ == names[kind]
        assert coroutine.__name__ == names[kind].rpartition(".")[2]
        assert coroutine.cr_running is False
        coroutine.close()

    with_coroutines(loop, tmp_path, kind, use)
