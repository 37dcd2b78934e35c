"""A server that is stopped while a connection arrives: what cancelling all tasks does, and in which turn what runs."""

from __future__ import annotations

import asyncio
import contextvars
import io
import socket
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.tls.peers import client_context, server_context


class Handled(asyncio.Protocol):
    """As aiosmtpd's: a task of its own serves the connection, and closes it when it is cancelled."""

    def __init__(self, log: list[str], made: Callable[[], object] = lambda: None) -> None:
        self.log, self.made = log, made

    def connection_made(self, transport: Any) -> None:
        self.log.append("connection_made")
        self.transport = transport
        self.made()
        self.task = asyncio.get_running_loop().create_task(self.handle())

    async def handle(self) -> None:
        self.log.append("first step")
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            self.transport.close()

    def data_received(self, data: bytes) -> None:
        self.log.append("data_received")

    def connection_lost(self, error: Exception | None) -> None:
        self.log.append("connection_lost")


class Stopped:
    """A server on a loop that runs until somebody cancels all tasks and stops it."""

    def __init__(self, loop: Any) -> None:
        self.loop = loop
        self.log: list[str] = []

    def stop(self) -> None:
        self.log.append("stop")
        self.loop.stop()
        for task in asyncio.all_tasks(self.loop):
            task.cancel()

    def serve_one(self, server: Any, path: str | None = None) -> None:
        """Until the server is closed, and its client has been told."""
        server = self.loop.run_until_complete(server)
        with socket.socket(socket.AF_UNIX if path else socket.AF_INET) as client:
            client.settimeout(10)
            client.connect(path or server.sockets[0].getsockname())
            self.loop.run_forever()
            server.close()
            self.loop.run_until_complete(asyncio.wait_for(server.wait_closed(), 10))
            self.loop.run_until_complete(asyncio.wait_for(self.ended(client), 10))

    async def ended(self, client: socket.socket) -> None:
        client.setblocking(False)
        try:
            assert await self.loop.sock_recv(client, 1) == b""
        except ConnectionResetError:
            pass


@pytest.fixture
def stopped(loop: Any) -> Stopped:
    return Stopped(loop)


def moments(stopped: Stopped) -> dict[str, Callable[[], Handled]]:
    """The factories of servers that are stopped at different moments."""
    log, loop, stop = stopped.log, stopped.loop, stopped.stop

    def in_the_factory() -> Handled:
        stop()
        return Handled(log)

    def before_connection_made() -> Handled:
        loop.call_soon(stop)
        return Handled(log)

    def in_connection_made() -> Handled:
        return Handled(log, stop)

    def before_the_first_step() -> Handled:
        return Handled(log, lambda: loop.call_soon(stop))

    def after_the_first_step() -> Handled:
        return Handled(log, lambda: loop.call_soon(loop.call_soon, stop))

    return {
        "in the factory": in_the_factory,
        "before connection_made": before_connection_made,
        "in connection_made": in_connection_made,
        "before the first step": before_the_first_step,
        "after the first step": after_the_first_step,
    }


@pytest.mark.contract
@pytest.mark.parametrize("moment", list(moments(Stopped(None))))
def test_cancelling_all_tasks_closes_a_connection_being_set_up(stopped: Stopped, moment: str) -> None:
    stopped.serve_one(stopped.loop.create_server(moments(stopped)[moment], "127.0.0.1", 0))
    assert stopped.log.count("connection_made") == stopped.log.count("connection_lost") == 1


@pytest.mark.contract
def test_cancelling_all_tasks_closes_a_unix_connection_being_set_up(stopped: Stopped, tmp_path: Path) -> None:
    path = str(tmp_path / "socket")
    factory = moments(stopped)["before connection_made"]
    stopped.serve_one(stopped.loop.create_unix_server(factory, path), path)
    assert "connection_lost" in stopped.log


@pytest.mark.contract
@pytest.mark.parametrize("moment", ["in the factory", "before connection_made"])
def test_cancelling_all_tasks_closes_a_connection_in_its_handshake(stopped: Stopped, moment: str) -> None:
    factory = moments(stopped)[moment]
    stopped.serve_one(stopped.loop.create_server(factory, "127.0.0.1", 0, ssl=server_context()))
    assert "first step" not in stopped.log


@pytest.mark.contract
def test_cancelling_all_tasks_closes_a_stream_connection_being_set_up(stopped: Stopped) -> None:
    writers = []

    def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writers.append(writer)
        stopped.loop.call_soon(stopped.stop)

    stopped.serve_one(asyncio.start_server(connected, "127.0.0.1", 0))
    assert writers[0].is_closing()
    writers[0].close()


@pytest.fixture
def connect(loop: Any) -> Callable[..., None]:
    """Runs the loop with a server of this factory and one client, until the condition holds."""

    def run(factory: Callable[[], Any], condition: Callable[[], object], **options: Any) -> None:
        async def main() -> None:
            server = await loop.create_server(factory, "127.0.0.1", 0, **options)
            with socket.create_connection(server.sockets[0].getsockname()) as client:
                client.send(b"x")
                while not condition():
                    await asyncio.sleep(0.001)
            server.close()

        loop.run_until_complete(asyncio.wait_for(main(), 10))

    return run


@pytest.mark.contract
def test_callbacks_scheduled_by_a_factory_run_before_connection_made(
    loop: Any, connect: Callable[..., None]
) -> None:
    log: list[str] = []

    async def task() -> None:
        log.append("task")

    def factory() -> Any:
        log.append("factory")
        loop.call_soon(log.append, "call_soon")
        tasks.append(loop.create_task(task()))
        return Closing(log)

    tasks: list[asyncio.Task[None]] = []
    connect(factory, lambda: "connection_lost" in log)
    assert log == ["factory", "call_soon", "task", "connection_made", "data_received", "connection_lost"]


class Closing(Handled):
    """Closes its connection as soon as data arrives."""

    def connection_made(self, transport: Any) -> None:
        self.log.append("connection_made")
        self.transport = transport
        self.made()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self.transport.close()


@pytest.mark.contract
def test_calls_from_threads_during_the_factory_run_before_connection_made(
    loop: Any, connect: Callable[..., None]
) -> None:
    log: list[str] = []

    def factory() -> Any:
        thread = threading.Thread(target=loop.call_soon_threadsafe, args=(log.append, "thread"))
        thread.start()
        thread.join()
        return Closing(log)

    connect(factory, lambda: "connection_lost" in log)
    assert log[:2] == ["thread", "connection_made"]


@pytest.mark.contract
def test_connections_that_arrive_together_are_made_in_order(loop: Any) -> None:
    log: list[str] = []

    def factory() -> Any:
        number = len(log)
        log.append(f"factory {number}")
        loop.call_soon(log.append, f"put off {number}")
        return Numbered(log, number)

    class Numbered(asyncio.Protocol):
        def __init__(self, log: list[str], number: int) -> None:
            self.log, self.number = log, number

        def connection_made(self, transport: Any) -> None:
            self.log.append(f"made {self.number}")
            transport.abort()

    async def main() -> None:
        with socket.create_server(("127.0.0.1", 0)) as listening:
            clients = [socket.create_connection(listening.getsockname()) for _ in range(3)]
            server = await loop.create_server(factory, sock=listening)
            while len(log) < 9:
                await asyncio.sleep(0.001)
            server.close()
            for client in clients:
                client.close()

    loop.run_until_complete(asyncio.wait_for(main(), 10))
    made = [entry for entry in log if entry.startswith("made")]
    factories = [entry for entry in log if entry.startswith("factory")]
    assert [entry.split()[1] for entry in made] == [entry.split()[1] for entry in factories]
    for number in (entry.split()[1] for entry in factories):
        assert log.index(f"factory {number}") < log.index(f"put off {number}") < log.index(f"made {number}")


@pytest.mark.contract
def test_context_variables_set_by_a_factory_are_seen_by_its_protocol_only(
    loop: Any, connect: Callable[..., None]
) -> None:
    variable = contextvars.ContextVar("variable", default="not set")
    seen: list[str] = []
    log: list[str] = []

    def factory() -> Any:
        seen.append(variable.get())
        variable.set("by the factory")
        return Closing(log, lambda: seen.append(variable.get()))

    connect(factory, lambda: "connection_lost" in log)
    connect(factory, lambda: log.count("connection_lost") == 2)
    assert seen == ["not set", "by the factory"] * 2


@pytest.mark.contract
def test_context_variables_set_by_a_factory_are_seen_by_its_tls_protocol(loop: Any) -> None:
    variable = contextvars.ContextVar("variable", default="not set")
    seen: list[str] = []
    log: list[str] = []

    def factory() -> Any:
        variable.set("by the factory")
        return Handled(log, lambda: seen.append(variable.get()))

    async def main() -> None:
        server = await loop.create_server(factory, "127.0.0.1", 0, ssl=server_context())
        host, port = server.sockets[0].getsockname()
        _, writer = await asyncio.open_connection(
            host, port, ssl=client_context(), server_hostname="localhost"
        )
        while not seen:
            await asyncio.sleep(0.001)
        writer.close()
        server.close()
        await asyncio.wait_for(server.wait_closed(), 10)
        await writer.wait_closed()
        while "connection_lost" not in log:
            await asyncio.sleep(0.001)

    loop.run_until_complete(asyncio.wait_for(main(), 10))
    assert seen == ["by the factory"]


@pytest.mark.contract
def test_a_connection_being_set_up_can_be_waited_for_as_a_task(loop: Any) -> None:
    """By all the means that programs use on all_tasks()."""
    log: list[str] = []

    async def wait(others: set[Any]) -> None:
        (task,) = asyncio.all_tasks() - others - {asyncio.current_task()}
        assert task.get_loop() is loop and isinstance(task, asyncio.Task) and asyncio.isfuture(task)
        assert not task.done() and not task.cancelled() and task.cancelling() == task.uncancel() == 0
        assert task.get_name() and repr(task)
        task.get_coro(), task.get_stack(), task.print_stack(file=io.StringIO())
        told = loop.create_future()
        task.add_done_callback(told.set_result)
        task.add_done_callback(told.set_exception)
        assert task.remove_done_callback(told.set_exception) == 1
        await asyncio.gather(task)
        assert log == ["connection_made"]
        assert await told is task
        await task
        await asyncio.wait([task])
        await asyncio.wait_for(task, 10)
        assert task.done() and not task.cancelled() and task.exception() is None and task.result() is None
        assert task not in asyncio.all_tasks()

    async def main() -> None:
        waited = loop.create_future()
        others = asyncio.all_tasks()

        def factory() -> Any:
            waited.set_result(loop.create_task(wait(others)))
            return Closing(log)

        server = await loop.create_server(factory, "127.0.0.1", 0)
        with socket.create_connection(server.sockets[0].getsockname()):
            await (await waited)
        while "connection_lost" not in log:
            await asyncio.sleep(0.001)
        server.close()

    loop.run_until_complete(asyncio.wait_for(main(), 10))


@pytest.mark.contract
def test_a_runner_that_ends_closes_a_connection_being_set_up(new_loop: Callable[..., Any]) -> None:
    log: list[str] = []

    async def main() -> None:
        loop = asyncio.get_running_loop()
        arrived = loop.create_future()

        def factory() -> Any:
            arrived.set_result(None)
            return Handled(log)

        server = await loop.create_server(factory, "127.0.0.1", 0)
        client.connect(server.sockets[0].getsockname())
        await arrived
        server.close()

    with closing(socket.socket()) as client, asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(main())
    assert log.count("connection_made") == log.count("connection_lost") == 1


@pytest.mark.contract
def test_in_debug_mode_a_connection_cancelled_while_it_is_set_up_is_reported(stopped: Stopped) -> None:
    reports: list[dict[str, Any]] = []
    stopped.loop.set_debug(True)
    stopped.loop.set_exception_handler(lambda loop, context: reports.append(context))
    factory = moments(stopped)["before connection_made"]
    stopped.serve_one(stopped.loop.create_server(factory, "127.0.0.1", 0))
    (report,) = reports
    assert report["message"] == "Error on transport creation for incoming connection"
    assert isinstance(report["exception"], asyncio.CancelledError)
    reports.clear()


def test_a_loop_that_never_runs_again_releases_accepted_connections(new_loop: Callable[..., Any]) -> None:
    loop = new_loop()

    def factory() -> Any:
        loop.stop()
        return Handled([])

    server = loop.run_until_complete(loop.create_server(factory, "127.0.0.1", 0))
    with socket.create_connection(server.sockets[0].getsockname()) as client:
        loop.run_forever()
        server.close()
        with pytest.warns(ResourceWarning, match="unclosed transport"):
            loop.close()
        client.settimeout(10)
        assert client.recv(1) == b""
