"""Served: one address, a listener or a share of the connections on every context."""

from __future__ import annotations

import asyncio
import os
import resource
import socket
import threading
import time
from collections import Counter
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import pytest

from tests.scheduler.dying import die, kill
from tests.tls.peers import client_context, server_context
from uringloop.scheduler import Scheduler, StopReport, current_context


async def tell(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    context = current_context()
    assert context is not None
    line = await reader.readline()
    writer.write(f"{context.name} {line.decode()}".encode())
    await writer.drain()
    writer.close()


class Tell(asyncio.Protocol):
    transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport  # type: ignore[assignment]
        self.line = b""

    def data_received(self, data: bytes) -> None:
        context = current_context()
        assert context is not None
        self.line += data
        if data.endswith(b"\n"):
            self.transport.write(f"{context.name} {self.line.decode()}".encode())
            self.transport.close()


def connected(address: Any) -> socket.socket:
    client = socket.socket(socket.AF_UNIX if isinstance(address, str) else socket.AF_INET)
    client.settimeout(10)
    client.connect(address)
    return client


def rest(client: socket.socket) -> bytes:
    found = b""
    while part := client.recv(100):
        found += part
    return found


def ask(address: Any) -> str:
    with connected(address) as client:
        client.sendall(b"hello\n")
        return rest(client).decode()


@pytest.mark.parametrize("how", [{"client_connected_cb": tell}, {"protocol_factory": Tell}])
def test_serves_on_every_context(engine: str, how: dict[str, Any]) -> None:
    with Scheduler(2) as scheduler:
        served = scheduler.serve(**how, host="127.0.0.1", port=0)
        assert len(served.addresses) == 2
        answers = [ask(("127.0.0.1", served.port)) for _ in range(40)]
        assert all(answer.endswith(" hello\n") for answer in answers)
        assert len(Counter(answer.split()[0] for answer in answers)) == 2
        served.close()
        assert scheduler.join(10)


def test_serves_a_path_from_all_contexts(engine: str, tmp_path: Path) -> None:
    path = str(tmp_path / "socket")
    with Scheduler(2) as scheduler:
        served = scheduler.serve(tell, path=path)
        answers = Counter(ask(path).split()[0] for _ in range(10))
        assert set(answers.values()) == {5}
        assert repr(served) == f"<Served open ['{path}']>"
    assert not Path(path).exists()


def test_bad_arguments(engine: str) -> None:
    with Scheduler(2) as scheduler:
        with pytest.raises(TypeError, match="either"):
            scheduler.serve(host="127.0.0.1", port=0)
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            with pytest.raises(OSError, match="address"):
                scheduler.serve(tell, "127.0.0.1", taken.getsockname()[1])


def test_path_that_is_no_socket_is_left_alone(engine: str, tmp_path: Path) -> None:
    precious, link = tmp_path / "precious", tmp_path / "link"
    precious.write_text("data")
    stale = socket.socket(socket.AF_UNIX)
    stale.bind(str(tmp_path / "stale"))
    stale.close()
    link.symlink_to(tmp_path / "stale")
    with Scheduler(2) as scheduler:
        for path in (precious, link, tmp_path):
            with pytest.raises(OSError, match="in use"):
                scheduler.serve(tell, path=path)
        with pytest.raises(TypeError):
            scheduler.serve(tell, path=tmp_path / "new", backlog="many")
        served = scheduler.serve(tell, path=str(tmp_path / "stale"))
        with pytest.raises(OSError, match="in use"):
            scheduler.serve(tell, path=tmp_path / "stale")
        assert ask(str(tmp_path / "stale")).endswith("hello\n")
        served.close()
    assert precious.read_text() == "data"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link", "precious"]


def test_path_that_was_replaced_is_left_alone(engine: str, tmp_path: Path) -> None:
    path = tmp_path / "socket"
    with Scheduler(1) as scheduler:
        scheduler.serve(tell, path=path)
        path.rename(tmp_path / "kept")
        path.write_text("another's")
    assert path.read_text() == "another's"


def test_path_is_served_on_when_the_context_that_accepts_dies(engine: str, tmp_path: Path) -> None:
    path = str(tmp_path / "socket")
    with Scheduler(3) as scheduler:
        scheduler.serve(tell, path=path)
        ask(path)
        for number in (0, 1):
            kill(scheduler, scheduler.contexts[number])
            names = {ask(path).split()[0] for _ in range(6)}
            assert names == {context.name for context in scheduler.contexts[number + 1 :]}
        kill(scheduler, scheduler.contexts[2])
        assert not Path(path).exists()


def test_port_is_served_on_by_those_that_live(engine: str) -> None:
    with Scheduler(2) as scheduler:
        served = scheduler.serve(tell, "127.0.0.1", 0)
        kill(scheduler, scheduler.contexts[0])
        assert {ask(("127.0.0.1", served.port)).split()[0] for _ in range(20)} == {scheduler.contexts[1].name}


@pytest.mark.parametrize("where", ["port", "path", "tls"])
def test_connections_queued_at_a_dead_context_are_served_by_another(
    engine: str, where: str, tmp_path: Path
) -> None:
    held, goes_on = threading.Event(), threading.Event()
    at: dict[str, Any] = {"host": "127.0.0.1", "port": 0}
    if where == "path":
        at = {"path": str(tmp_path / "socket")}
    elif where == "tls":
        at["ssl"] = server_context()

    async def hold_up_and_die() -> None:
        held.set()
        goes_on.wait(20)
        await die()

    with Scheduler(2) as scheduler, ExitStack() as stack:
        served = scheduler.serve(tell, **at)
        scheduler.submit(hold_up_and_die(), context=scheduler.contexts[0])
        assert held.wait(10)
        clients = [stack.enter_context(connected(served.addresses[0])) for _ in range(20)]
        goes_on.set()
        scheduler.contexts[0].thread.join(10)
        for client in clients:
            if where == "tls":
                client = client_context().wrap_socket(client, server_hostname="localhost")
            with client:
                client.sendall(b"hello\n")
                assert rest(client).decode() == f"{scheduler.contexts[1].name} hello\n"
        assert scheduler.stop() == StopReport(dead=[scheduler.contexts[0]])


def test_path_is_served_on_after_a_want_of_descriptors(
    engine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asyncio.constants, "ACCEPT_RETRY_DELAY", 0.01)
    path, failed, taken = str(tmp_path / "socket"), threading.Event(), []
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    with Scheduler(2) as scheduler, socket.socket(socket.AF_UNIX) as client:
        client.settimeout(10)
        loop = scheduler.contexts[0].loop
        loop.set_exception_handler(lambda loop, context: failed.set() if "resource" in str(context) else None)
        try:
            # First: io_uring looks at the limit when it begins to accept.
            resource.setrlimit(resource.RLIMIT_NOFILE, (client.fileno() + 20, before[1]))
            scheduler.serve(tell, path=path)
            ask(path)
            with suppress(OSError):
                while True:
                    taken.append(os.dup(client.fileno()))
            client.connect(path)
            assert failed.wait(10)
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, before)
            for descriptor in taken:
                os.close(descriptor)
        client.sendall(b"hello\n")
        assert rest(client).endswith(b"hello\n")
        assert ask(path).endswith("hello\n")


class Asks(asyncio.Protocol):
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport, self.line = transport, b""

    def data_received(self, data: bytes) -> None:
        self.line += data
        if self.line == b"end\n":
            self.transport.write(b"ended\n")  # type: ignore[attr-defined]
            self.transport.close()


async def until_end(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    assert await reader.readline() == b"end\n"
    writer.write(b"ended\n")
    writer.close()


@pytest.mark.parametrize("where", ["port", "path"])
@pytest.mark.parametrize("how", [{"client_connected_cb": until_end}, {"protocol_factory": Asks}])
def test_stop_lets_connections_finish(engine: str, how: dict[str, Any], where: str, tmp_path: Path) -> None:
    with Scheduler(2) as scheduler:
        at: dict[str, Any] = (
            {"path": str(tmp_path / "s")} if where == "path" else {"host": "127.0.0.1", "port": 0}
        )
        served = scheduler.serve(**how, **at)
        address = served.addresses[0]
        clients = [connected(address) for _ in range(4)]
        while served.connections < 4:
            time.sleep(0.001)
        assert scheduler.statistics()["connections"] == 4
        reports: list[StopReport] = []
        thread = threading.Thread(target=lambda: reports.append(scheduler.stop()))
        thread.start()
        while scheduler.statistics()["state"] != "stopping":
            time.sleep(0.001)
        for client in clients:
            with client:
                client.sendall(b"end\n")
                assert rest(client) == b"ended\n"
        thread.join(10)
        assert reports == [StopReport()]


def test_stop_breaks_off_connections_that_do_not_finish(engine: str) -> None:
    scheduler = Scheduler(2)
    scheduler.start()
    served = scheduler.serve(until_end, "127.0.0.1", 0)
    with connected(("127.0.0.1", served.port)) as client:
        while not served.connections:
            time.sleep(0.001)
        report = scheduler.stop(0.01)
        assert report == StopReport(connections=1)
        assert rest(client) == b""
    assert served.over


def test_job_of_a_connection_runs_while_stop_waits(engine: str) -> None:
    with Scheduler(2) as scheduler:

        async def asks(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readline()
            writer.write(await scheduler.submit(asyncio.sleep(0, b"7")))
            writer.close()

        served = scheduler.serve(asks, "127.0.0.1", 0)
        with connected(("127.0.0.1", served.port)) as client:
            while not served.connections:
                time.sleep(0.001)
            thread = threading.Thread(target=scheduler.stop)
            thread.start()
            while scheduler.statistics()["state"] != "stopping":
                time.sleep(0.001)
            client.sendall(b"\n")
            assert rest(client) == b"7"
        thread.join(10)
        assert not thread.is_alive()


def test_serve_async(engine: str, loop: Any, tmp_path: Path) -> None:
    path = str(tmp_path / "socket")

    async def main() -> None:
        async with Scheduler(2, max_pending=1) as scheduler:
            with pytest.raises(RuntimeError, match="await serve_async"):
                scheduler.serve(tell, "127.0.0.1", 0)
            held = asyncio.Event()
            waiting = scheduler.submit(held.wait())  # max_pending does not count what listening takes
            served = await scheduler.serve_async(tell, "127.0.0.1", 0)
            await scheduler.serve_async(tell, path=path)
            for address in (("127.0.0.1", served.port), path):
                assert (await asyncio.to_thread(ask, address)).endswith("hello\n")
            waiting.cancel()
        await asyncio.get_running_loop().shutdown_default_executor()

    loop.run_until_complete(main())


def test_handler_that_raises_closes_its_connection(engine: str) -> None:
    async def fail(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        raise ZeroDivisionError

    said: list[Any] = []
    with Scheduler(1) as scheduler:
        scheduler.contexts[0].loop.set_exception_handler(
            lambda loop, context: said.append(context["exception"])
        )
        served = scheduler.serve(fail, "127.0.0.1", 0)
        assert ask(("127.0.0.1", served.port)) == ""
    assert [type(error) for error in said] == [ZeroDivisionError]


@pytest.mark.parametrize("where", ["port", "path"])
def test_serves_tls(engine: str, where: str, tmp_path: Path) -> None:
    with Scheduler(2) as scheduler:
        at: dict[str, Any] = {"path": tmp_path / "s"} if where == "path" else {"host": "127.0.0.1", "port": 0}
        served = scheduler.serve(tell, ssl=server_context(), **at)
        context = client_context()
        for _ in range(4):
            with context.wrap_socket(connected(served.addresses[0]), server_hostname="localhost") as client:
                client.sendall(b"hello\n")
                assert rest(client).endswith(b" hello\n")
