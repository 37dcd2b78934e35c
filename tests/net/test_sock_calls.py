"""The sock_* coroutines: what asyncio promises of them, and that cancelling loses nothing."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

Pair = tuple[socket.socket, socket.socket]


@pytest.fixture
def pair() -> Iterator[Pair]:
    """Two ends of a Unix stream connection."""
    left, right = socket.socketpair()
    left.setblocking(False)
    right.setblocking(False)
    yield left, right
    left.close()
    right.close()


@pytest.fixture
def run(loop: asyncio.AbstractEventLoop) -> Callable[..., Any]:
    def run(main: Any) -> Any:
        return loop.run_until_complete(asyncio.wait_for(main, 20))

    return run


def bound(family: int = socket.AF_INET, address: Any = ("127.0.0.1", 0)) -> socket.socket:
    sock = socket.socket(family, socket.SOCK_DGRAM)
    sock.bind(address)
    sock.setblocking(False)
    return sock


@pytest.mark.contract
def test_sock_recv_returns_present_data_and_waits_for_later_data(
    loop: asyncio.AbstractEventLoop, run: Any, pair: Pair
) -> None:
    async def main() -> None:
        left, right = pair
        right.send(b"there")
        assert await loop.sock_recv(left, 100) == b"there"
        later = loop.create_task(loop.sock_recv(left, 3))
        await asyncio.sleep(0)
        right.send(b"later")
        assert await later == b"lat"
        assert await loop.sock_recv(left, 100) == b"er"
        right.close()
        assert await loop.sock_recv(left, 100) == b""

    run(main())


@pytest.mark.contract
def test_calls_that_can_finish_at_once_do_not_suspend(loop: asyncio.AbstractEventLoop, pair: Pair) -> None:
    left, right = pair
    right.send(b"x")
    buffer = bytearray(1)
    for coroutine, expected in [
        (loop.sock_recv(left, 10), b"x"),
        (loop.sock_sendall(left, b"answer"), None),
        (loop.sock_recv_into(right, buffer), 1),
    ]:
        with pytest.raises(StopIteration) as stopped:
            coroutine.send(None)  # type: ignore[attr-defined]
        assert stopped.value.value == expected
    assert buffer == b"a"


@pytest.mark.contract
def test_large_data_arrives_whole_through_a_small_socket_buffer(
    loop: asyncio.AbstractEventLoop, run: Any, pair: Pair
) -> None:
    data = bytes(range(256)) * 20_000

    async def receive(sock: socket.socket, size: int) -> bytes:
        parts = []
        while part := await loop.sock_recv(sock, size):
            parts.append(part)
        return b"".join(parts)

    async def main() -> None:
        left, right = pair
        left.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
        receiving = loop.create_task(receive(right, 300_000))
        await loop.sock_sendall(left, data)
        await loop.sock_sendall(left, memoryview(bytearray(data)))
        left.shutdown(socket.SHUT_WR)
        assert await receiving == data * 2

    run(main())


@pytest.mark.contract
def test_sock_recv_into_fills_a_buffer(loop: asyncio.AbstractEventLoop, run: Any, pair: Pair) -> None:
    async def main() -> None:
        left, right = pair
        buffer = bytearray(b"........")
        receiving = loop.create_task(loop.sock_recv_into(left, memoryview(buffer)[2:6]))
        await asyncio.sleep(0)
        right.send(b"abcdefgh")
        assert await receiving == 4
        assert buffer == b"..abcd.."

    run(main())


@pytest.mark.contract
def test_sock_recvfrom_returns_the_address_of_the_sender(loop: asyncio.AbstractEventLoop, run: Any) -> None:
    async def main() -> None:
        with bound() as left, bound() as right:
            here, there = left.getsockname(), right.getsockname()
            receiving = loop.create_task(loop.sock_recvfrom(right, 100))
            await asyncio.sleep(0)
            assert await loop.sock_sendto(left, b"first", there) == 5
            assert await receiving == (b"first", here)
            await loop.sock_sendto(left, bytearray(b"second"), ("localhost", there[1]))
            buffer = bytearray(3)
            assert await loop.sock_recvfrom_into(right, buffer) == (3, here)
            assert buffer == b"sec"
            await loop.sock_sendto(left, b"", there)
            assert await loop.sock_recvfrom_into(right, buffer, 1) == (0, here)

    run(main())


@pytest.mark.contract
def test_sock_recvfrom_returns_the_path_of_a_unix_sender(
    loop: asyncio.AbstractEventLoop, run: Any, tmp_path: Path
) -> None:
    here, there = str(tmp_path / "a"), str(tmp_path / "b")

    async def main() -> None:
        with bound(socket.AF_UNIX, here) as left, bound(socket.AF_UNIX, there) as right:
            await loop.sock_sendto(left, b"data", there)
            assert await loop.sock_recvfrom(right, 100) == (b"data", here)

    run(main())


def test_large_datagrams_wait_until_there_is_room(
    loop: asyncio.AbstractEventLoop, run: Any, tmp_path: Path
) -> None:
    """Stock asyncio forgets all but the last."""

    async def main() -> None:
        with (
            bound(socket.AF_UNIX, str(tmp_path / "a")) as left,
            bound(socket.AF_UNIX, str(tmp_path / "b")) as right,
        ):
            sent = [
                loop.create_task(loop.sock_sendto(left, b"x" * 50_000, right.getsockname()))
                for _ in range(30)
            ]
            await asyncio.sleep(0.01)
            assert not all(task.done() for task in sent)
            for _ in sent:
                assert len((await loop.sock_recvfrom(right, 100_000))[0]) == 50_000
            assert await asyncio.gather(*sent) == [50_000] * 30

    run(main())


@pytest.mark.contract
def test_sock_connect_and_sock_accept_make_a_connection(loop: asyncio.AbstractEventLoop, run: Any) -> None:
    async def main() -> None:
        with socket.create_server(("127.0.0.1", 0)) as listener, socket.socket() as client:
            listener.setblocking(False)
            client.setblocking(False)
            accepting = loop.create_task(loop.sock_accept(listener))
            await asyncio.sleep(0)
            await loop.sock_connect(client, listener.getsockname())
            accepted, address = await accepting
            with accepted:
                assert address == client.getsockname()
                assert accepted.gettimeout() == 0 and not accepted.get_inheritable()
                assert (accepted.family, accepted.type, accepted.proto) == (
                    client.family,
                    client.type,
                    client.proto,
                )
                await loop.sock_sendall(client, b"hello")
                assert await loop.sock_recv(accepted, 10) == b"hello"

    run(main())


@pytest.mark.contract
def test_sock_connect_connects_to_a_unix_path(
    loop: asyncio.AbstractEventLoop, run: Any, tmp_path: Path
) -> None:
    path = str(tmp_path / "listener")

    async def main() -> None:
        with socket.socket(socket.AF_UNIX) as listener, socket.socket(socket.AF_UNIX) as client:
            listener.bind(path)
            listener.listen()
            listener.setblocking(False)
            client.setblocking(False)
            await loop.sock_connect(client, path)
            accepted, address = await loop.sock_accept(listener)
            accepted.close()
            assert address == ""

    run(main())


def test_connecting_to_a_full_unix_listener_waits_for_room(
    loop: asyncio.AbstractEventLoop, run: Any, tmp_path: Path
) -> None:
    """Stock asyncio says it is connected when it is not."""
    path = str(tmp_path / "listener")

    async def main() -> None:
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(path)
            listener.listen(1)
            listener.setblocking(False)
            clients = [socket.socket(socket.AF_UNIX) for _ in range(5)]
            for client in clients:
                client.setblocking(False)
            connecting = asyncio.gather(*(loop.sock_connect(client, path) for client in clients))
            for _ in clients:
                (await loop.sock_accept(listener))[0].close()
            await connecting
            for client in clients:
                client.getpeername()
                client.close()

    run(main())


@pytest.mark.contract
def test_sock_connect_raises_connection_refused_error(loop: asyncio.AbstractEventLoop, run: Any) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = listener.getsockname()

    async def main() -> None:
        with socket.socket() as client:
            client.setblocking(False)
            with pytest.raises(ConnectionRefusedError, match="Connect call failed"):
                await loop.sock_connect(client, address)

    run(main())


@pytest.mark.contract
def test_a_cancelled_sock_recv_loses_no_data(loop: asyncio.AbstractEventLoop, run: Any, pair: Pair) -> None:
    """Whether the data come before the cancel, with it, or after it, and in whichever turn."""

    async def main() -> None:
        left, right = pair
        for turns_before in range(4):
            for turns_between in range(4):
                for data_first in (True, False):
                    receiving = loop.create_task(loop.sock_recv(left, 100))
                    for _ in range(turns_before):
                        await asyncio.sleep(0)
                    if data_first:
                        right.send(b"data")
                    else:
                        receiving.cancel()
                    for _ in range(turns_between):
                        await asyncio.sleep(0)
                    if data_first:
                        receiving.cancel()
                    else:
                        right.send(b"data")
                    received = await asyncio.gather(receiving, return_exceptions=True)
                    if received != [b"data"]:
                        assert isinstance(received[0], asyncio.CancelledError)
                        assert await loop.sock_recv(left, 100) == b"data"

    if isinstance(loop, asyncio.SelectorEventLoop):
        pytest.skip("asyncio's own loop takes the data before it looks whether anybody waits")
    run(main())


@pytest.mark.contract
def test_a_cancelled_accept_leaves_the_connection_to_the_next_accept(
    loop: asyncio.AbstractEventLoop, run: Any
) -> None:
    async def main() -> None:
        with socket.create_server(("127.0.0.1", 0)) as listener:
            listener.setblocking(False)
            accepting = loop.create_task(loop.sock_accept(listener))
            await asyncio.sleep(0)
            accepting.cancel()
            with socket.create_connection(listener.getsockname()) as client:
                with pytest.raises(asyncio.CancelledError):
                    await accepting
                accepted, address = await loop.sock_accept(listener)
                accepted.close()
                assert address == client.getsockname()

    run(main())


@pytest.mark.contract
def test_a_cancelled_send_leaves_the_socket_usable(
    loop: asyncio.AbstractEventLoop, run: Any, pair: Pair
) -> None:
    async def main() -> None:
        left, right = pair
        data = bytearray(10_000_000)
        sending = loop.create_task(loop.sock_sendall(left, data))
        await asyncio.sleep(0)
        sending.cancel()
        with pytest.raises(asyncio.CancelledError):
            await sending
        data.clear()  # nobody holds the buffer any more
        with pytest.raises(BlockingIOError):
            while True:
                right.recv(1 << 20)
        await loop.sock_sendall(left, b"end")
        assert await loop.sock_recv(right, 10) == b"end"

    run(main())


@pytest.mark.contract
def test_the_socket_may_be_closed_right_after_a_cancel(
    loop: asyncio.AbstractEventLoop, run: Any, pair: Pair
) -> None:
    async def main() -> None:
        left, right = pair
        receiving = loop.create_task(loop.sock_recv(left, 1))
        await asyncio.sleep(0.01)
        receiving.cancel()
        with pytest.raises(asyncio.CancelledError):
            await receiving
        left.close()
        assert await loop.sock_recv(right, 1) == b""

    run(main())


@pytest.mark.contract
def test_a_reset_is_raised_to_the_waiting_receiver(loop: asyncio.AbstractEventLoop, run: Any) -> None:
    async def main() -> None:
        with socket.create_server(("127.0.0.1", 0)) as listener, socket.socket() as client:
            listener.setblocking(False)
            client.setblocking(False)
            await loop.sock_connect(client, listener.getsockname())
            accepted, _ = await loop.sock_accept(listener)
            receiving = loop.create_task(loop.sock_recv(client, 1))
            await asyncio.sleep(0)
            accepted.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            accepted.close()
            with pytest.raises(ConnectionResetError):
                await receiving
            with pytest.raises(BrokenPipeError):
                await loop.sock_sendall(client, b"x")

    run(main())


@pytest.mark.contract
@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda loop, sock: loop.sock_recv(sock, -1), ValueError),
        (lambda loop, sock: loop.sock_recv(sock, "1"), TypeError),
        (lambda loop, sock: loop.sock_recv(sock, 2**80), OverflowError),
        (lambda loop, sock: loop.sock_recv_into(sock, b"read only"), TypeError),
        (lambda loop, sock: loop.sock_recv_into(sock, 5), TypeError),
        (lambda loop, sock: loop.sock_recvfrom(sock, -1), ValueError),
        (lambda loop, sock: loop.sock_recvfrom_into(sock, bytearray(1), 2), ValueError),
        (lambda loop, sock: loop.sock_recvfrom_into(sock, bytearray(1), -1), ValueError),
        (lambda loop, sock: loop.sock_sendall(sock, "text"), TypeError),
        (lambda loop, sock: loop.sock_sendall(sock, None), TypeError),
        (lambda loop, sock: loop.sock_sendto(sock, "text", ("127.0.0.1", 1)), TypeError),
        (
            lambda loop, sock: loop.sock_sendto(sock, b"", ("127.0.0.1", 65536)),
            (OverflowError, TypeError, OSError),
        ),
        (lambda loop, sock: loop.sock_connect(sock, 5), TypeError),
        (lambda loop, sock: loop.sock_accept(sock), OSError),
    ],
)
def test_a_wrong_argument_raises_when_awaited(
    loop: asyncio.AbstractEventLoop, run: Any, pair: Pair, call: Any, error: Any
) -> None:
    async def main() -> None:
        coroutine = call(loop, pair[0])
        with pytest.raises(error):
            await coroutine

    run(main())


@pytest.mark.contract
def test_a_closed_socket_raises_ebadf(loop: asyncio.AbstractEventLoop, run: Any) -> None:
    async def main() -> None:
        sock = socket.socket()
        sock.close()
        for coroutine in (loop.sock_recv(sock, 1), loop.sock_sendall(sock, b"x"), loop.sock_accept(sock)):
            with pytest.raises(OSError, match="Bad file descriptor"):
                await coroutine

    run(main())


def every_call(loop: asyncio.AbstractEventLoop, sock: Any) -> list[Any]:
    return [
        *(loop.sock_recv(sock, 1), loop.sock_recv_into(sock, bytearray(1)), loop.sock_recvfrom(sock, 1)),
        *(
            loop.sock_recvfrom_into(sock, bytearray(1)),
            loop.sock_sendall(sock, b""),
            loop.sock_sendto(sock, b"", ""),
        ),
        *(loop.sock_connect(sock, ""), loop.sock_accept(sock)),
    ]


@pytest.mark.contract
def test_debug_mode_refuses_a_blocking_socket(loop: asyncio.AbstractEventLoop, run: Any) -> None:
    async def main() -> None:
        with socket.socket() as sock:
            for coroutine in every_call(loop, sock):
                with pytest.raises(ValueError, match="the socket must be non-blocking"):
                    await coroutine

    loop.set_debug(True)
    run(main())


@pytest.mark.contract
def test_an_ssl_socket_is_refused(loop: asyncio.AbstractEventLoop, run: Any) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False

    async def main() -> None:
        with context.wrap_socket(socket.socket(), do_handshake_on_connect=False) as sock:
            for coroutine in every_call(loop, sock):
                with pytest.raises(TypeError, match="SSLSocket"):
                    await coroutine

    run(main())


@pytest.mark.contract
def test_sock_calls_are_coroutines(loop: asyncio.AbstractEventLoop, pair: Pair) -> None:
    for coroutine in every_call(loop, pair[0]):
        assert asyncio.iscoroutine(coroutine)
        coroutine.close()
        with pytest.raises(RuntimeError, match="already awaited"):
            coroutine.send(None)


@pytest.mark.contract
def test_a_call_never_awaited_emits_a_runtime_warning(loop: asyncio.AbstractEventLoop, pair: Pair) -> None:
    with pytest.warns(RuntimeWarning, match="was never awaited"):
        loop.sock_recv(pair[0], 1)


@pytest.mark.contract
def test_a_socket_of_a_transport_is_refused(loop: asyncio.AbstractEventLoop, run: Any, pair: Pair) -> None:
    async def main() -> None:
        transport, _ = await loop.create_connection(asyncio.Protocol, sock=pair[0])
        with pytest.raises(RuntimeError, match="is used by transport"):
            await loop.sock_recv(pair[0], 1)
        transport.close()
        await asyncio.sleep(0)

    run(main())


def test_all_receivers_of_one_socket_get_data(loop: asyncio.AbstractEventLoop, run: Any, pair: Pair) -> None:
    """Stock asyncio forgets all but the last."""

    async def main() -> None:
        left, right = pair
        receiving = [loop.create_task(loop.sock_recv(left, 1)) for _ in range(10)]
        await asyncio.sleep(0)
        right.send(b"0123456789")
        assert sorted(await asyncio.gather(*receiving)) == [b"%d" % i for i in range(10)]

    run(main())


def test_a_loop_with_a_pending_call_can_be_closed(new_loop: Callable[..., Any], pair: Pair) -> None:
    loop = new_loop()
    receiving = loop.create_task(loop.sock_recv(pair[0], 1))
    loop.run_until_complete(asyncio.sleep(0))
    loop.close()
    assert not receiving.done()
    receiving._log_destroy_pending = False
