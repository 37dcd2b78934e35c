import asyncio
import socket
from typing import Any

import pytest

from uringloop._core.loop.monitor import OPERATIONS
from uringloop.inspect.observers import Observer


def test_a_connection_s_receive_names_its_transport(loop: Any) -> None:
    async def main() -> None:
        ours, theirs = socket.socketpair()
        with theirs:
            transport, _ = await loop.create_connection(asyncio.Protocol, sock=ours)
            await asyncio.sleep(0)
            found = [each for each in loop.operations() if each.owner is transport]
            assert [each.kind.split()[0] for each in found] == ["RecvOp"]
            assert found[0].fd == ours.fileno()
            assert found[0].state in ("queued", "in kernel")
            assert "RecvOp" in str(found[0]) and "StreamTransport" in str(found[0])
            transport.close()
            await asyncio.sleep(0)

    loop.run_until_complete(main())


def test_a_server_s_accept_names_its_server(loop: Any) -> None:
    async def main() -> None:
        server = await asyncio.start_server(lambda reader, writer: None, "127.0.0.1", 0)
        await asyncio.sleep(0)
        found = [each for each in loop.operations() if each.kind == "AcceptOp"]
        assert len(found) == 1
        assert "Server" in repr(found[0].owner)
        server.close()
        await server.wait_closed()

    loop.run_until_complete(main())


def test_an_operation_names_the_task_that_awaits_it(loop: Any) -> None:
    async def main() -> None:
        ours, theirs = socket.socketpair()
        with ours, theirs:
            ours.setblocking(False)
            task = loop.create_task(loop.sock_recv(ours, 1), name="reader of one byte")
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            assert task in [each.owner for each in loop.operations()]
            theirs.send(b"x")
            assert await task == b"x"
            assert task not in [each.owner for each in loop.operations()]

    loop.run_until_complete(main())


def test_a_reader_names_its_handle(loop: Any) -> None:
    async def main() -> None:
        ours, theirs = socket.socketpair()
        with ours, theirs:
            loop.add_reader(ours, print)
            await asyncio.sleep(0)
            (found,) = (each for each in loop.operations() if each.fd == ours.fileno())
            assert "print" in repr(found.owner)
            loop.remove_reader(ours)
            await asyncio.sleep(0)

    loop.run_until_complete(main())


def test_the_loop_s_own_have_no_owner_and_a_closed_loop_has_none(loop: Any) -> None:
    loop.run_until_complete(asyncio.sleep(0))
    (wake,) = (each for each in loop.operations() if each.kind == "WakeOp")
    assert wake.owner is None
    assert str(wake).endswith("for the loop")
    loop.close()
    assert loop.operations() == []


def test_only_the_loop_s_own_thread_may_ask_while_it_runs(loop: Any) -> None:
    async def main() -> None:
        await asyncio.to_thread(loop.operations)

    with pytest.raises(RuntimeError):
        loop.run_until_complete(main())


def test_with_an_observer_operations_have_a_start_time(loop: Any) -> None:
    async def main() -> None:
        ours, theirs = socket.socketpair()
        with ours, theirs:
            ours.setblocking(False)
            theirs.setblocking(False)
            before = loop.create_task(loop.sock_recv(ours, 1))
            await asyncio.sleep(0)
            with Observer(OPERATIONS, loop):
                await asyncio.sleep(0)
                started = loop.time()
                behind = loop.create_task(loop.sock_recv(theirs, 1))
                await asyncio.sleep(0)
                since = {each.fd: each.since for each in loop.operations()}
                assert since[ours.fileno()] is None
                assert started <= since[theirs.fileno()] <= loop.time()
                assert any(" since " in str(each) for each in loop.operations())
                ours.send(b"x")
                theirs.send(b"x")
                assert await before + await behind == b"xx"

    loop.run_until_complete(main())
