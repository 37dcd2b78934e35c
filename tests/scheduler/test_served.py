"""Served: one address, a listener or a share of the connections on every context."""

from __future__ import annotations

import asyncio
import socket
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from uringloop.scheduler import Scheduler, current_context


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


def ask(address: Any) -> str:
    with socket.socket(socket.AF_UNIX if isinstance(address, str) else socket.AF_INET) as client:
        client.settimeout(10)
        client.connect(address)
        client.sendall(b"hello\n")
        found = b""
        while part := client.recv(100):
            found += part
        return found.decode()


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
