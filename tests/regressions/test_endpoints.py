"""Datagram endpoints: pausing, closing while they are told, and errors in the midst of what they are told."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import socket
from pathlib import Path
from typing import Any

import pytest

from tests.streams import is_open, turns


class Recorder(asyncio.DatagramProtocol):
    def __init__(self) -> None:
        self.told: list[Any] = []
        self.news = asyncio.Event()
        self.lost = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: Any) -> None:
        self.transport = transport

    def datagram_received(self, data: bytes, addr: Any) -> None:
        self.told.append(data)
        self.news.set()

    def error_received(self, error: Exception) -> None:
        self.told.append(type(error))
        self.news.set()

    def connection_lost(self, error: Exception | None) -> None:
        self.told.append("lost")
        self.lost.set_result(error)

    async def until(self, count: int) -> None:
        while len(self.told) < count:
            self.news.clear()
            await self.news.wait()


async def endpoint(factory: Any = Recorder, **options: Any) -> tuple[Any, Any]:
    """Its protocol, and its address."""
    options = options or {"local_addr": ("127.0.0.1", 0)}
    transport, protocol = await asyncio.get_running_loop().create_datagram_endpoint(factory, **options)
    return protocol, transport.get_extra_info("sockname")


@pytest.fixture
def run(loop: asyncio.AbstractEventLoop) -> Any:
    return lambda main: loop.run_until_complete(asyncio.wait_for(main, 30))


@pytest.mark.contract
def test_an_endpoint_can_pause_and_resume_reading(run: Any) -> None:
    class Pausing(Recorder):
        def datagram_received(self, data: bytes, addr: Any) -> None:
            super().datagram_received(data, addr)
            if data == b"2":
                self.transport.pause_reading()

    async def main() -> None:
        protocol, address = await endpoint(Pausing)
        transport = protocol.transport
        assert transport.is_reading()
        with socket.socket(type=socket.SOCK_DGRAM) as sender:
            for data in (b"1", b"2", b"3", b"2", b"4"):
                sender.sendto(data, address)
            await protocol.until(2)
            await turns(5)
            assert protocol.told == [b"1", b"2"] and not transport.is_reading()
            transport.pause_reading()
            transport.resume_reading()
            transport.resume_reading()
            await protocol.until(4)
            await turns(5)
            assert protocol.told == [b"1", b"2", b"3", b"2"]
            transport.resume_reading()
            transport.pause_reading()
            sender.sendto(b"5", address)
            await asyncio.sleep(0)
            transport.resume_reading()  # in the very turn in which what pausing has cancelled comes back
            await protocol.until(6)
            assert protocol.told[4:] == [b"4", b"5"]
        transport.pause_reading()
        transport.close()
        assert not transport.is_reading()
        transport.resume_reading()
        await protocol.lost

    run(main())


@pytest.mark.contract
def test_connection_made_may_pause_an_endpoint(run: Any) -> None:
    class Paused(Recorder):
        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            transport.pause_reading()

    async def main() -> None:
        protocol, address = await endpoint(Paused)
        protocol.transport.sendto(b"1", address)
        await turns(5)
        assert protocol.told == []
        protocol.transport.resume_reading()
        await protocol.until(1)
        protocol.transport.close()
        await protocol.lost

    run(main())


@pytest.mark.contract
@pytest.mark.parametrize("end", ["close", "abort"])
@pytest.mark.parametrize("where", ["datagram_received", "error_received", "connection_made"])
def test_any_callback_may_close_an_endpoint(run: Any, tmp_path: Path, where: str, end: str) -> None:
    """Once, with nothing told behind it, and the descriptor is closed."""

    def acting(self: Any, *arguments: Any) -> None:
        getattr(Recorder, where)(self, *arguments)
        getattr(self.transport, end)()

    async def main() -> None:
        kind = type("Acting", (Recorder,), {where: acting})
        protocol, address = await endpoint(kind, local_addr=str(tmp_path / "it"), family=socket.AF_UNIX)
        fd = protocol.transport.get_extra_info("socket").fileno()
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
            if where == "datagram_received":
                for data in (b"1", b"2", b"3"):
                    sender.sendto(data, address)
            elif where == "error_received":
                protocol.transport.sendto(b"x", str(tmp_path / "nobody"))
                protocol.transport.sendto(b"x", str(tmp_path / "nobody"))
            await protocol.lost
        await turns(3)
        assert protocol.told[-1] == "lost" and protocol.told.count("lost") == 1
        assert where != "datagram_received" or protocol.told == [b"1", "lost"]
        assert not is_open(fd)

    run(main())


variable: contextvars.ContextVar[str] = contextvars.ContextVar("variable", default="")


@pytest.mark.contract
def test_error_received_is_called_even_inside_another_callback(run: Any, tmp_path: Path) -> None:
    """In the caller's context, however deep: entering the endpoint's own once more is refused."""

    class Answering(Recorder):
        seen: list[str]

        def datagram_received(self, data: bytes, addr: Any) -> None:
            super().datagram_received(data, addr)
            variable.set("in a callback")
            self.transport.sendto(b"answer", str(tmp_path / "nobody"))

        def error_received(self, error: Exception) -> None:
            super().error_received(error)
            assert variable.get() == "in a callback"
            if len(self.told) < 4:
                self.transport.sendto(b"again", str(tmp_path / "nobody"))

    async def main() -> None:
        protocol, address = await endpoint(Answering, local_addr=str(tmp_path / "it"), family=socket.AF_UNIX)
        reports: list[Any] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, report: reports.append(report))
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
            sender.sendto(b"ask", address)
            await protocol.until(4)
        assert protocol.told == [b"ask"] + [FileNotFoundError] * 3
        assert reports == []
        protocol.transport.close()
        await protocol.lost

    run(main())


@pytest.mark.contract
def test_an_exception_of_error_received_is_raised_by_sendto(run: Any, tmp_path: Path) -> None:
    class Raising(Recorder):
        def error_received(self, error: Exception) -> None:
            raise ZeroDivisionError

    async def main() -> None:
        protocol, _ = await endpoint(Raising, local_addr=str(tmp_path / "it"), family=socket.AF_UNIX)
        with pytest.raises(ZeroDivisionError):
            protocol.transport.sendto(b"x", str(tmp_path / "nobody"))
        assert not protocol.transport.is_closing()
        protocol.transport.close()
        await protocol.lost

    run(main())


@pytest.mark.contract
def test_an_endpoint_has_no_stream_methods(run: Any) -> None:
    async def main() -> None:
        protocol, _ = await endpoint()
        transport = protocol.transport
        for call in (
            lambda: transport.write(b"x"),
            lambda: transport.writelines([b"x"]),
            transport.write_eof,
            transport.can_write_eof,
        ):
            with pytest.raises(NotImplementedError):
                call()
        transport.close()
        await protocol.lost

    run(main())


@pytest.mark.contract
def test_an_exception_of_connection_lost_is_reported(loop: Any, run: Any, tmp_path: Path) -> None:
    """Also where the end came with the last datagram that waited for room: it left run_forever."""

    class Raising(Recorder):
        def connection_lost(self, error: Exception | None) -> None:
            super().connection_lost(error)
            raise ZeroDivisionError

    async def main() -> None:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as peer:
            peer.bind(str(tmp_path / "peer"))
            peer.setblocking(False)
            protocol, _ = await endpoint(Raising, remote_addr=str(tmp_path / "peer"), family=socket.AF_UNIX)
            while not protocol.transport.get_write_buffer_size():
                protocol.transport.sendto(b"x" * 100)
            protocol.transport.close()
            while not protocol.lost.done():
                with contextlib.suppress(BlockingIOError):
                    peer.recv(1000)
                await asyncio.sleep(0)
            await turns(2)

    reports: list[Any] = []
    loop.set_exception_handler(lambda _, report: reports.append(report))
    run(main())
    (report,) = reports
    assert isinstance(report["exception"], ZeroDivisionError)
    reports.clear()


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("end", ["close", "abort"])
def test_closing_the_loop_closes_the_descriptor_of_a_closed_endpoint(new_loop: Any, end: str) -> None:
    """Its polls were still in the kernel when connection_lost was called: they end with the loop."""
    loop = new_loop()
    protocol, _ = loop.run_until_complete(endpoint())
    fd = protocol.transport.get_extra_info("socket").fileno()
    protocol.lost.add_done_callback(lambda _: loop.stop())
    getattr(protocol.transport, end)()
    while not protocol.lost.done():
        loop.call_soon(loop.stop)
        loop.run_forever()
    loop.close()
    assert not is_open(fd)
