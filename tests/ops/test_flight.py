"""A flight that URINGLOOP_RESTRICT forbids: the kernel refuses it, and the error says so."""

from __future__ import annotations

import errno
import os
import socket
from collections.abc import Callable
from typing import Any

import liburing
import pytest

from uringloop import ops
from uringloop._core.kernel import restriction
from uringloop._core.kernel.probe import offered

pytestmark = pytest.mark.skipif(not offered()["restrictions"], reason="no ring can be restricted here")

NEW_SOCKET = (liburing.io_uring_prep_socket, socket.AF_INET, socket.SOCK_STREAM, 0, 0)


@pytest.fixture
def restricted(monkeypatch: pytest.MonkeyPatch, new_loop: Callable[..., Any]) -> Callable[..., Any]:
    """Runs a coroutine on a loop with URINGLOOP_RESTRICT."""

    def run(coroutine: Any, value: str = "1") -> Any:
        monkeypatch.setenv("URINGLOOP_RESTRICT", value)
        return new_loop().run_until_complete(coroutine)

    return run


def test_what_the_loop_does_itself_is_allowed(restricted: Any) -> None:
    async def main() -> None:
        source, sink = os.pipe()
        assert await ops.submit(liburing.io_uring_prep_write, sink, b"abc", 3, 0) == 3
        room = bytearray(3)
        assert await ops.submit(liburing.io_uring_prep_read, source, room, 3, 0, timeout=10) == 3
        assert room == b"abc"
        with pytest.raises(TimeoutError):
            await ops.submit(liburing.io_uring_prep_read, source, room, 3, 0, timeout=0.001)
        async with ops.chain() as chain:
            chain.submit(liburing.io_uring_prep_nop)
            written = chain.submit(liburing.io_uring_prep_write, sink, b"d", 1, 0)
        assert written.result() == 1
        os.close(source)
        os.close(sink)

    restricted(main())


def test_what_is_not_in_the_list_is_refused_and_the_error_says_why(restricted: Any) -> None:
    async def main() -> None:
        with pytest.raises(PermissionError) as error:
            await ops.submit(*NEW_SOCKET)
        assert error.value.errno == errno.EACCES
        assert (
            error.value.strerror
            == "URINGLOOP_RESTRICT forbids IORING_OP_SOCKET; to allow it: URINGLOOP_RESTRICT=1,socket"
        )
        assert await ops.submit(liburing.io_uring_prep_nop) == 0
        with pytest.raises(PermissionError, match="forbids the flags 0x1 of an entry"):
            await ops.submit(liburing.io_uring_prep_nop, flags=int(liburing.IOSQE_FIXED_FILE))

    restricted(main())


def test_what_the_environment_adds_is_allowed(restricted: Any) -> None:
    async def main() -> None:
        os.close(await ops.submit(*NEW_SOCKET))
        with pytest.raises(PermissionError, match="forbids IORING_OP_LISTEN"):
            await ops.submit(liburing.io_uring_prep_listen, 0, 1)

    restricted(main(), "futex_wait, SOCKET")


def test_other_errors_are_as_before(restricted: Any) -> None:
    async def main() -> None:
        with pytest.raises(OSError, match="Bad file descriptor"):
            await ops.submit(liburing.io_uring_prep_fsync, 12345)

    restricted(main())


def test_the_kernel_refuses_it_and_not_only_the_library() -> None:
    """An entry that the library has not looked at: on a ring of the user's own that uringloop has restricted."""
    mine = liburing.Ring()
    liburing.io_uring_queue_init(8, mine, liburing.IORING_SETUP_R_DISABLED)
    assert restriction.restrict(mine.ring_fd) == 0
    assert restriction.restrict(mine.ring_fd) < 0  # once and for all
    liburing.io_uring_enable_rings(mine)
    found = []
    for prepare, *arguments in [(liburing.io_uring_prep_nop,), NEW_SOCKET]:
        sqe = liburing.io_uring_get_sqe(mine)
        prepare(sqe, *arguments)
        liburing.io_uring_submit(mine)
        cqe = liburing.Cqe()
        liburing.io_uring_wait_cqe(mine, cqe)
        try:
            found.append(cqe[0].res)
        except PermissionError as error:
            found.append(-error.errno)
        liburing.io_uring_cq_advance(mine, 1)
    liburing.io_uring_queue_exit(mine)
    assert found == [0, -errno.EACCES]


def test_without_the_option_every_operation_is_allowed(restricted: Any) -> None:
    async def main() -> None:
        os.close(await ops.submit(*NEW_SOCKET))

    restricted(main(), "")


@pytest.mark.engines("epoll")
def test_a_kernel_that_restricts_no_rings_gives_none(engine: str, program: Any) -> None:
    code = """
import asyncio, uringloop
from uringloop import ops

async def main():
    try:
        ops.attach()
    except uringloop.UringUnavailable as error:
        print(error)

uringloop.run(main())
"""
    ended = program(code, URINGLOOP_RESTRICT="1", URINGLOOP_DISABLE="restrictions")
    assert "URINGLOOP_RESTRICT asks for a restricted ring" in ended.stdout
