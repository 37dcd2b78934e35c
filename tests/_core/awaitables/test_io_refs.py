"""A socket that the program closes while the loop waits for it: it closes at once, and what was waited for ends."""

from __future__ import annotations

import asyncio
import errno
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import pytest

from tests.streams import pair, turns

Pair = tuple[socket.socket, socket.socket]


@pytest.fixture
def run(loop: Any) -> Callable[..., Any]:
    return lambda main: loop.run_until_complete(asyncio.wait_for(main, 20))


@pytest.fixture
def ends() -> Iterator[Pair]:
    left, right = pair()
    yield left, right
    left.close()
    right.close()


def calls(loop: Any) -> dict[str, Callable[[socket.socket], Any]]:
    return {
        "recv": lambda sock: loop.sock_recv(sock, 1),
        "recv_into": lambda sock: loop.sock_recv_into(sock, bytearray(1)),
        "recvfrom": lambda sock: loop.sock_recvfrom(sock, 1),
        "recvfrom_into": lambda sock: loop.sock_recvfrom_into(sock, bytearray(1)),
    }


async def is_cancelled(task: asyncio.Task[Any]) -> bool:
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
    return task.cancelled()


def ended(peer: socket.socket) -> bool:
    """The other end has closed, and that is seen already."""
    try:
        return peer.recv(1) == b""
    except BlockingIOError:
        return False


@pytest.mark.relies_on("io_refs")
@pytest.mark.contract
@pytest.mark.parametrize("name", ["recv", "recv_into", "recvfrom", "recvfrom_into"])
def test_the_peer_sees_the_close_of_a_socket_with_a_pending_call(
    loop: Any, run: Any, ends: Pair, name: str
) -> None:
    async def main() -> None:
        left, right = ends
        waiting = [loop.create_task(calls(loop)[name](left))]
        await turns()
        left.close()
        assert ended(right)
        assert await is_cancelled(waiting[0])

    run(main())


@pytest.mark.contract
def test_the_peer_sees_the_end_of_a_socket_that_has_a_reader(loop: Any, run: Any, ends: Pair) -> None:
    async def main() -> None:
        left, right = ends
        number = left.fileno()
        loop.add_reader(left, print)
        await turns()
        left.close()
        assert ended(right)
        assert loop.remove_reader(number)

    run(main())


@pytest.mark.relies_on("io_refs")
@pytest.mark.contract
@pytest.mark.parametrize("how", ["accept", "reader", "removed reader"])
def test_the_address_of_a_closed_listener_is_free(loop: Any, run: Any, how: str) -> None:
    async def main() -> None:
        with socket.create_server(("127.0.0.1", 0)) as listener:
            address = listener.getsockname()
            listener.setblocking(False)
            if how == "accept":
                accepting = loop.create_task(loop.sock_accept(listener))
            else:
                loop.add_reader(listener, print)
            await turns()
            if how == "removed reader":
                loop.remove_reader(listener)
            number = listener.fileno()
        with socket.socket() as again:
            again.bind(address)
        if how == "accept":
            assert await is_cancelled(accepting)
        elif how == "reader":
            loop.remove_reader(number)

    run(main())


@pytest.mark.contract
@pytest.mark.parametrize("give_away", [socket.socket.close, socket.socket.detach])
def test_a_reused_descriptor_number_loses_no_data_to_the_old_receive(
    loop: Any, run: Any, ends: Pair, give_away: Callable[[socket.socket], Any]
) -> None:
    async def main() -> None:
        left, right = ends
        number = left.fileno()
        receiving = loop.create_task(loop.sock_recv(left, 100))
        await turns()
        if give_away(left) == number:
            taken = socket.socket(fileno=number)  # who has it may receive from it
            right.send(b"for the new owner")
            with pytest.raises(OSError) as raised:
                await receiving
            assert raised.value.errno == errno.EBADF
            with taken:
                assert taken.recv(100) == b"for the new owner"
            return
        others = pair("unix")
        assert number in [other.fileno() for other in others]
        for other in others:
            other.send(b"theirs")
        await turns(5)
        assert not receiving.done()
        for other in others:
            assert other.recv(100) == b"theirs"
            other.close()
        assert await is_cancelled(receiving)

    run(main())


@pytest.mark.relies_on("io_refs")
@pytest.mark.contract
def test_a_reused_descriptor_number_gets_no_data_of_the_old_send(loop: Any, run: Any, ends: Pair) -> None:
    async def main() -> None:
        left, right = ends
        number = left.fileno()
        sending = loop.create_task(loop.sock_sendall(left, b"x" * 20_000_000))
        await turns()
        left.close()
        others = pair("unix")
        assert number in [other.fileno() for other in others]
        while await loop.sock_recv(right, 1 << 20):
            pass
        await turns()
        for other in others:
            with pytest.raises(BlockingIOError):
                other.recv(100)
        for other in others:
            other.close()
        assert await is_cancelled(sending)

    run(main())


@pytest.mark.contract
def test_a_reader_that_closes_its_socket_is_not_called_for_the_next_one(
    loop: Any, run: Any, ends: Pair
) -> None:
    async def main() -> None:
        left, right = ends
        number = left.fileno()
        told: list[int] = []
        others: list[socket.socket] = []

        def close() -> None:
            told.append(1)
            left.close()
            others.extend(pair("unix"))

        loop.add_reader(left, close)
        right.send(b"x")
        while not told:
            await asyncio.sleep(0)
        assert number in [other.fileno() for other in others]
        for other in others:
            other.send(b"for nobody")
        await turns(5)
        assert told == [1]
        assert loop.remove_reader(number)
        for other in others:
            other.close()

    run(main())


@pytest.mark.relies_on("io_refs")
@pytest.mark.contract
def test_a_socket_waited_for_twice_and_used_again(loop: Any, run: Any, ends: Pair) -> None:
    async def main() -> None:
        left, right = ends
        for _ in range(3):
            receiving = loop.create_task(loop.sock_recv(left, 1))
            sending = loop.create_task(loop.sock_sendall(left, b"y" * 5_000_000))
            await turns()
            right.send(b"x")
            assert await receiving == b"x"
            size = 0
            while size < 5_000_000:
                size += len(await loop.sock_recv(right, 1 << 20))
            await sending
        receiving = loop.create_task(loop.sock_recv(left, 1))
        await turns()
        left.close()
        assert ended(right)
        assert await is_cancelled(receiving)

    run(main())


@pytest.mark.contract
def test_files_and_transports_still_count_in_io_refs(loop: Any, run: Any, ends: Pair) -> None:
    """What the socket is asked for is still a number."""

    async def main() -> None:
        left, right = ends
        receiving = loop.create_task(loop.sock_recv(left, 1))
        await turns()
        file = left.makefile("rb")
        right.send(b"x")
        assert await receiving == b"x"
        left.close()
        assert not ended(right)
        file.close()
        assert ended(right)
        again, peer = pair()
        peer.send(b"x")
        receiving = loop.create_task(loop.sock_recv(again, 2))
        await turns()
        assert await receiving == b"x"
        transport, _ = await loop.create_connection(asyncio.Protocol, sock=again)
        transport.close()
        assert await loop.sock_recv(peer, 1) == b""
        peer.close()

    run(main())


@pytest.mark.relies_on("io_refs")
@pytest.mark.contract
def test_another_thread_may_close_the_socket(loop: Any, run: Any, ends: Pair) -> None:
    async def main() -> None:
        left, right = ends
        receiving = loop.create_task(loop.sock_recv(left, 1))
        await turns()
        thread = threading.Thread(target=left.close)
        thread.start()
        assert await loop.sock_recv(right, 1) == b""
        thread.join()
        assert await is_cancelled(receiving)

    run(main())


def test_io_refs_behaves_like_a_number(loop: Any, run: Any, ends: Pair) -> None:
    async def main() -> None:
        left, right = ends
        right.send(b"x")
        receiving = loop.create_task(loop.sock_recv(left, 2))
        assert await receiving == b"x"
        waiting = loop.create_task(loop.sock_recv(left, 1))
        await turns()
        refs = left._io_refs  # type: ignore[attr-defined]
        assert (refs, int(refs), repr(refs), hash(refs)) == (0, 0, "0", hash(0))
        assert refs >= 0 and refs < 1 and not refs > 0 and refs != 1
        assert (refs + 1, refs - 1, [5][refs]) == (1, -1, 5)
        assert await is_cancelled(waiting)

    run(main())


def test_a_loop_may_be_gone_before_its_socket_is_closed(new_loop: Callable[..., Any], ends: Pair) -> None:
    left, right = ends
    loop = new_loop()

    async def main() -> None:
        waiting = loop.create_task(loop.sock_recv(left, 1))
        await turns()
        assert await is_cancelled(waiting)

    loop.run_until_complete(main())
    loop.close()
    left.close()
    assert ended(right)
