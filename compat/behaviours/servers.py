"""create_server and the Server object."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import resource
import socket
from typing import Any

from compat.behaviours import check
from compat.behaviours.helpers import (
    Accepting,
    Echo,
    Recorder,
    collected_errors,
    pair,
    raises_async,
    serving,
    soon,
    until,
)

SERVER = "create_server: host list, reuse_port, start_serving, serve_forever"
CLIENTS = "Server.close_clients, abort_clients 3.13"
WAIT = "Server.wait_closed waits for connections 3.12"
ACCEPTED = "connect_accepted_socket"
TROUBLE = "a server in trouble: no descriptors left, failing factory, no reference"


@check(SERVER)
async def server_listens_on_every_host_given() -> None:
    loop = asyncio.get_running_loop()
    server = await loop.create_server(Recorder, ["127.0.0.1", "127.0.0.2"], 0)
    assert isinstance(server, asyncio.AbstractServer)
    addresses = sorted(sock.getsockname() for sock in server.sockets)
    assert [host for host, _ in addresses] == ["127.0.0.1", "127.0.0.2"]
    for host, port in addresses:
        transport, _ = await soon(loop.create_connection(Recorder, host, port))
        transport.close()
    server.close()
    assert not server.is_serving() and len(server.sockets) == 0
    await raises_async(OSError, loop.create_connection(Recorder, *addresses[0]))


@check(SERVER)
async def two_servers_share_a_port_on_request() -> None:
    async with serving(Recorder, reuse_port=True) as (_, port):
        server = await asyncio.get_running_loop().create_server(Recorder, "127.0.0.1", port, reuse_port=True)
        server.close()
        await raises_async(OSError, asyncio.get_running_loop().create_server(Recorder, "127.0.0.1", port))


@check(SERVER)
async def server_waits_for_start_serving() -> None:
    loop = asyncio.get_running_loop()
    server = await loop.create_server(Recorder, "127.0.0.1", 0, start_serving=False)
    assert not server.is_serving()
    port = server.sockets[0].getsockname()[1]
    await raises_async(ConnectionRefusedError, loop.create_connection(Recorder, "127.0.0.1", port))
    await server.start_serving()
    assert server.is_serving() and server.get_loop() is loop
    transport, _ = await soon(loop.create_connection(Recorder, "127.0.0.1", port))
    transport.close()
    server.close()


@check(SERVER)
async def serve_forever_ends_by_cancel_and_closes() -> None:
    loop = asyncio.get_running_loop()
    server = await loop.create_server(Recorder, "127.0.0.1", 0, start_serving=False)
    port = server.sockets[0].getsockname()[1]
    task = asyncio.create_task(server.serve_forever())
    await until(server.is_serving)
    transport, _ = await soon(loop.create_connection(Recorder, "127.0.0.1", port))
    transport.close()
    task.cancel()
    await raises_async(asyncio.CancelledError, soon(task))
    assert not server.is_serving()
    await raises_async(RuntimeError, server.serve_forever())


@check(SERVER)
async def async_with_closes_the_server() -> None:
    loop = asyncio.get_running_loop()
    async with await loop.create_server(Recorder, "127.0.0.1", 0) as server:
        assert server.is_serving()
        assert hasattr(server.sockets[0], "getsockname")
    assert not server.is_serving()


@check(SERVER)
async def server_takes_a_listening_socket() -> None:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        server = await asyncio.get_running_loop().create_server(Echo, sock=sock)
        reader, writer = await asyncio.open_connection(*sock.getsockname())
        writer.write(b"echo")
        assert await soon(reader.readexactly(4)) == b"echo"
        writer.close()
        server.close()
        # closed together with the server
        await until(lambda: sock.fileno() == -1)


@check("create_server(keep_alive=) 3.13", since=(3, 13))
async def keep_alive_reaches_the_accepted_socket() -> None:
    async with pair(keep_alive=True) as both:
        sock = both.server.get_extra_info("socket")
        assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) != 0


@check(CLIENTS, since=(3, 13))
async def close_clients_closes_the_transports() -> None:
    loop = asyncio.get_running_loop()
    async with serving(accept := Accepting()) as (server, port):
        _, protocol = await soon(loop.create_connection(Recorder, "127.0.0.1", port))
        await accept.connected()
        server.close()
        server.close_clients()
        await soon(protocol.lost)
        assert "eof" in protocol.calls
        await soon(server.wait_closed())


@check(CLIENTS, since=(3, 13))
async def abort_clients_drops_what_is_queued() -> None:
    loop = asyncio.get_running_loop()

    class Flood(Recorder):
        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            transport.write(bytes(50_000_000))

    async with serving(accept := Accepting(Flood)) as (server, port):
        transport, protocol = await soon(loop.create_connection(Recorder, "127.0.0.1", port))
        transport.pause_reading()
        await accept.connected()
        server.close()
        server.abort_clients()
        await soon(server.wait_closed())
        transport.resume_reading()
        await soon(protocol.lost)
        assert len(protocol.data) < 50_000_000


@check(WAIT, since=(3, 12, 1))
async def wait_closed_waits_for_the_clients() -> None:
    loop = asyncio.get_running_loop()
    async with serving(accept := Accepting()) as (server, port):
        transport, _ = await soon(loop.create_connection(Recorder, "127.0.0.1", port))
        await accept.connected()
        server.close()
        waiting = asyncio.create_task(server.wait_closed())
        await asyncio.sleep(0.1)
        assert not waiting.done()
        transport.close()
        await soon(waiting)


@check(ACCEPTED)
async def accepted_socket_becomes_a_transport() -> None:
    loop = asyncio.get_running_loop()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        client = socket.create_connection(listener.getsockname())
        accepted, _ = listener.accept()
        transport, protocol = await soon(loop.connect_accepted_socket(Echo, accepted))
        client.sendall(b"hello")
        assert await protocol.received(5) == b"hello"
        assert await loop.run_in_executor(None, client.recv, 100) == b"hello"
        client.close()
        await soon(protocol.lost)
        assert transport.is_closing()


@check(TROUBLE)
async def server_nobody_refers_to_keeps_serving() -> None:
    loop = asyncio.get_running_loop()

    async def start() -> int:
        server = await loop.create_server(Echo, "127.0.0.1", 0)
        return int(server.sockets[0].getsockname()[1])

    port = await start()
    gc.collect()
    for _ in range(2):
        reader, writer = await soon(asyncio.open_connection("127.0.0.1", port))
        writer.write(b"still here")
        assert await soon(reader.readexactly(10)) == b"still here"
        writer.close()


@check(TROUBLE)
async def server_survives_a_failing_factory() -> None:
    loop = asyncio.get_running_loop()
    failing = True

    def factory() -> Any:
        if failing:
            raise LookupError("not now")
        return Echo()

    with collected_errors() as contexts:
        async with serving(factory) as (_, port):
            _, protocol = await soon(loop.create_connection(Recorder, "127.0.0.1", port))
            await soon(protocol.lost)
            failing = False
            reader, writer = await soon(asyncio.open_connection("127.0.0.1", port))
            writer.write(b"works")
            assert await soon(reader.readexactly(5)) == b"works"
            writer.close()
    assert any(isinstance(context.get("exception"), LookupError) for context in contexts) or failing is False


@check(TROUBLE, alone=True)
async def server_backs_off_when_descriptors_run_out() -> None:
    loop = asyncio.get_running_loop()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    # before the server starts: io_uring accepts under the limit of the time it was asked to
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(map(int, os.listdir("/proc/self/fd"))) + 16, hard))
    try:
        with collected_errors() as contexts:
            async with serving(Echo) as (_, port):
                client = socket.socket()
                client.setblocking(False)
                fillers = []
                with contextlib.suppress(OSError):
                    while True:
                        fillers.append(os.dup(client.fileno()))
                client.connect_ex(("127.0.0.1", port))
                await until(lambda: contexts)
                for filler in fillers:
                    os.close(filler)
                await loop.sock_sendall(client, b"late")
                assert await soon(loop.sock_recv(client, 10)) == b"late"
                client.close()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert any("system resource" in context["message"] for context in contexts), contexts
    # stock asyncio reports it as often as its backlog is long, then waits a second
    assert len(contexts) <= 200, len(contexts)
