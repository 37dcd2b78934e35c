"""websockets: servers and clients."""

from __future__ import annotations

import asyncio
import os
from typing import Any

from websockets.asyncio.client import connect, unix_connect
from websockets.asyncio.server import serve, unix_serve
from websockets.exceptions import ConnectionClosedError, ConnectionClosedOK

from compat.behaviours import check
from compat.behaviours.helpers import client_tls, server_tls, soon

ROW = "websockets"


async def _echo(connection: Any) -> None:
    async for message in connection:
        await connection.send(message)


@check(ROW)
async def messages_of_every_size() -> None:
    async with serve(_echo, "127.0.0.1", 0, max_size=None) as server:
        port = server.sockets[0].getsockname()[1]
        async with connect(f"ws://127.0.0.1:{port}", max_size=None) as client:
            for size in (0, 1, 125, 126, 65535, 65536, 1_000_000, 5_000_000):
                message = os.urandom(size)
                await client.send(message)
                assert await soon(client.recv()) == message
            await client.send("text ✓")
            assert await soon(client.recv()) == "text ✓"
            assert await soon(await client.ping()) < 5


@check(ROW)
async def hundred_clients_at_once() -> None:
    async def talk(port: int, number: int) -> None:
        async with connect(f"ws://127.0.0.1:{port}") as client:
            for turn in range(20):
                await client.send(f"{number}-{turn}")
                assert await client.recv() == f"{number}-{turn}"

    async with serve(_echo, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        await soon(asyncio.gather(*(talk(port, number) for number in range(100))), 30)


@check(ROW)
async def over_tls() -> None:
    async with serve(_echo, "127.0.0.1", 0, ssl=server_tls()) as server:
        port = server.sockets[0].getsockname()[1]
        uri = f"wss://localhost:{port}"
        async with connect(uri, ssl=client_tls(), host="127.0.0.1") as client:
            message = os.urandom(500_000)
            await client.send(message)
            assert await soon(client.recv()) == message


@check(ROW)
async def over_a_unix_socket() -> None:
    path = f"{os.getcwd()}/websocket"
    async with unix_serve(_echo, path), unix_connect(path) as client:
        await client.send("unix")
        assert await soon(client.recv()) == "unix"


@check(ROW)
async def closing_codes_and_dropped_peers() -> None:
    async def close(connection: Any) -> None:
        command = await connection.recv()
        if command == "close":
            await connection.close(4001, "because")
        else:
            connection.transport.abort()

    async with serve(close, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        for command, code in (("close", 4001), ("drop", 1006)):
            async with connect(f"ws://127.0.0.1:{port}") as client:
                await client.send(command)
                try:
                    await soon(client.recv())
                except (ConnectionClosedError, ConnectionClosedOK):
                    assert client.close_code == code, client.close_code


@check(ROW)
async def broadcast_with_backpressure() -> None:
    async def flood(connection: Any) -> None:
        for _ in range(200):
            await connection.send(bytes(100_000))

    async with serve(flood, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        async with connect(f"ws://127.0.0.1:{port}") as client:
            await asyncio.sleep(0.1)
            count = 0
            async for message in client:
                assert len(message) == 100_000
                count += 1
            assert count == 200
