"""The sock_* methods."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
from collections.abc import Iterator
from typing import Any

from compat.behaviours import check
from compat.behaviours.helpers import raises_async, soon

BASIC = "sock_connect, sock_accept, sock_sendall, sock_recv, sock_recv_into"
DATAGRAM = "sock_recvfrom, sock_recvfrom_into, sock_sendto 3.11"
COROUTINES = "sock_* are real coroutines"
CANCEL = "cancelled sock_* lose nothing"
REFUSALS = "sock_* refuse wrong sockets"


@contextlib.contextmanager
def _socketpair() -> Iterator[tuple[socket.socket, socket.socket]]:
    left, right = socket.socketpair()
    with left, right:
        left.setblocking(False)
        right.setblocking(False)
        yield left, right


@contextlib.contextmanager
def _listener() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.setblocking(False)
        yield listener


def _client() -> socket.socket:
    client = socket.socket()
    client.setblocking(False)
    return client


@check(BASIC)
async def connect_accept_and_talk() -> None:
    loop: Any = asyncio.get_running_loop()
    with _listener() as listener, _client() as client:
        accepting = asyncio.create_task(loop.sock_accept(listener))
        await asyncio.sleep(0.02)
        assert await soon(loop.sock_connect(client, listener.getsockname())) is None
        accepted, address = await soon(accepting)
        with accepted:
            assert address == client.getsockname()
            assert accepted.gettimeout() == 0 and not accepted.getblocking()
            await loop.sock_sendall(client, b"hello")
            assert await soon(loop.sock_recv(accepted, 100)) == b"hello"
            buffer = bytearray(10)
            await loop.sock_sendall(accepted, memoryview(b"world"))
            assert await soon(loop.sock_recv_into(client, buffer)) == 5
            assert buffer == b"world\0\0\0\0\0"
            client.close()
            assert await soon(loop.sock_recv(accepted, 100)) == b""


@check(BASIC)
async def sock_sendall_sends_more_than_the_buffers_hold() -> None:
    loop: Any = asyncio.get_running_loop()
    message = os.urandom(8_000_000)
    with _socketpair() as (left, right):
        sending = asyncio.create_task(loop.sock_sendall(left, message))
        data = bytearray()
        while len(data) < len(message):
            data += await soon(loop.sock_recv(right, 1 << 20))
        await soon(sending)
        assert bytes(data) == message


@check(BASIC)
async def sock_connect_by_name_and_refused() -> None:
    loop: Any = asyncio.get_running_loop()
    with _listener() as listener, _client() as client:
        port = listener.getsockname()[1]
        await soon(loop.sock_connect(client, ("localhost", port)))
        assert client.getpeername() == ("127.0.0.1", port)
    with _client() as client:
        await raises_async(ConnectionRefusedError, soon(loop.sock_connect(client, ("127.0.0.1", port))))


@check(BASIC)
async def zero_sized_operations() -> None:
    loop: Any = asyncio.get_running_loop()
    with _socketpair() as (left, right):
        await soon(loop.sock_sendall(left, b""))
        await loop.sock_sendall(left, b"x")
        assert await soon(loop.sock_recv(right, 0)) == b""
        assert await soon(loop.sock_recv(right, 10)) == b"x"


@check(DATAGRAM)
async def sendto_and_recvfrom() -> None:
    loop: Any = asyncio.get_running_loop()
    with socket.socket(type=socket.SOCK_DGRAM) as one, socket.socket(type=socket.SOCK_DGRAM) as two:
        for sock in (one, two):
            sock.bind(("127.0.0.1", 0))
            sock.setblocking(False)
        waiting = asyncio.create_task(loop.sock_recvfrom(two, 1000))
        await asyncio.sleep(0.02)
        assert await soon(loop.sock_sendto(one, b"datagram", two.getsockname())) == 8
        assert await soon(waiting) == (b"datagram", one.getsockname())
        await loop.sock_sendto(one, b"", two.getsockname())
        assert await soon(loop.sock_recvfrom(two, 1000)) == (b"", one.getsockname())


@check(DATAGRAM)
async def recvfrom_into_a_buffer() -> None:
    loop: Any = asyncio.get_running_loop()
    with socket.socket(type=socket.SOCK_DGRAM) as one, socket.socket(type=socket.SOCK_DGRAM) as two:
        for sock in (one, two):
            sock.bind(("127.0.0.1", 0))
            sock.setblocking(False)
        buffer = bytearray(20)
        await loop.sock_sendto(one, b"0123456789", two.getsockname())
        assert await soon(loop.sock_recvfrom_into(two, buffer)) == (10, one.getsockname())
        assert buffer[:10] == b"0123456789"
        await loop.sock_sendto(one, b"0123456789", two.getsockname())
        assert await soon(loop.sock_recvfrom_into(two, buffer, 4)) == (4, one.getsockname())


@check(COROUTINES)
async def sock_methods_are_coroutines() -> None:
    loop: Any = asyncio.get_running_loop()
    with _socketpair() as (left, right):
        calls = [
            loop.sock_recv(right, 10),
            loop.sock_recv_into(right, bytearray(10)),
            loop.sock_sendall(left, b"x"),
            loop.sock_accept(left),
            loop.sock_connect(left, "/nowhere"),
        ]
        for call in calls:
            assert asyncio.iscoroutine(call), call
            call.close()
        task = asyncio.create_task(loop.sock_recv(right, 10))
        await asyncio.sleep(0)
        left.send(b"task")
        assert await soon(task) == b"task"


@check(CANCEL)
async def cancelled_sock_recv_loses_no_data() -> None:
    loop: Any = asyncio.get_running_loop()
    received = bytearray()
    sent = 0
    with _socketpair() as (left, right):
        for number in range(300):
            task = asyncio.create_task(loop.sock_recv(right, 4096))
            # before the wait, while waiting, and as the data arrives
            if number % 3:
                await asyncio.sleep(0 if number % 3 == 1 else 0.001)
            left.send(b"0123456789")
            sent += 10
            if number % 2:
                await asyncio.sleep(0)
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                received += await task
        while len(received) < sent:
            received += await soon(loop.sock_recv(right, 4096))
    assert bytes(received) == b"0123456789" * 300


@check(CANCEL)
async def cancelled_sock_accept_loses_no_connection() -> None:
    loop: Any = asyncio.get_running_loop()
    accepted = []
    with _listener() as listener:
        clients = []
        for number in range(50):
            task = asyncio.create_task(loop.sock_accept(listener))
            await asyncio.sleep(0)
            clients.append(socket.create_connection(listener.getsockname()))
            if number % 2:
                await asyncio.sleep(0)
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                accepted.append(await task)
        while len(accepted) < len(clients):
            accepted.append(await soon(loop.sock_accept(listener)))
    assert sorted(address for _, address in accepted) == sorted(client.getsockname() for client in clients)
    for sock in (*clients, *(sock for sock, _ in accepted)):
        sock.close()


@check(CANCEL)
async def sock_recv_works_after_a_timeout() -> None:
    loop: Any = asyncio.get_running_loop()
    with _socketpair() as (left, right):
        for _ in range(3):
            await raises_async(asyncio.TimeoutError, asyncio.wait_for(loop.sock_recv(right, 10), 0.02))
        waiting = asyncio.create_task(loop.sock_recv(right, 10))
        await asyncio.sleep(0.01)
        left.send(b"now")
        assert await soon(waiting) == b"now"


@check(CANCEL)
async def socket_closed_after_a_cancelled_connect_can_be_reused() -> None:
    loop: Any = asyncio.get_running_loop()
    for _ in range(5):
        client = _client()
        number = client.fileno()
        # nobody answers there, so it stays in flight
        task = asyncio.create_task(loop.sock_connect(client, ("10.255.255.1", 9)))
        await asyncio.sleep(0.01)
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError, OSError):
            await task
        client.close()
        # the next socket gets the same number, and must not meet what was registered for the last one
        with _listener() as listener, _client() as again:
            assert number in (again.fileno(), listener.fileno())
            await soon(loop.sock_connect(again, listener.getsockname()))
            accepted, _ = await soon(loop.sock_accept(listener))
            with accepted:
                await loop.sock_sendall(again, b"fresh")
                assert await soon(loop.sock_recv(accepted, 10)) == b"fresh"


@check(REFUSALS)
async def debug_mode_refuses_blocking_sockets() -> None:
    loop: Any = asyncio.get_running_loop()
    loop.set_debug(True)
    left, right = socket.socketpair()
    with left, right:
        await raises_async(ValueError, loop.sock_recv(left, 10))
        await raises_async(ValueError, loop.sock_recv_into(left, bytearray(10)))
        await raises_async(ValueError, loop.sock_sendall(left, b"x"))
        await raises_async(ValueError, loop.sock_accept(left))
        await raises_async(ValueError, loop.sock_connect(left, "/x"))
    loop.set_debug(False)


@check(REFUSALS)
async def closed_sockets_are_refused() -> None:
    loop: Any = asyncio.get_running_loop()
    with _socketpair() as (left, _):
        pass
    await raises_async(OSError, loop.sock_recv(left, 10))
    await raises_async(OSError, loop.sock_sendall(left, b"x"))
