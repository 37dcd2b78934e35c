"""The states of a TLS connection: each transition of the table in docs/design.md, over a transport of the test's own,
which sees the state at each write."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import Callable
from typing import Any

import pytest

from tests.streams import Recorder
from tests.tls.peers import client_context, server_context
from uringloop._core.tls.connection import TlsConnection
from uringloop._core.tls.transport import TlsTransport


class Below:
    """A transport between a TLS connection and its peer, which is in memory."""

    def __init__(self, context: ssl.SSLContext | None = None) -> None:
        self.loop = asyncio.get_running_loop()
        self.protocol = Recorder()
        self.connection = TlsConnection(
            self.loop, self.protocol, context or client_context(), None, False, "localhost", True, 10, 10
        )
        self.transport = TlsTransport(self.connection)
        self.incoming, self.outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.peer = server_context().wrap_bio(self.incoming, self.outgoing, server_side=True)
        self.states: list[str] = []

    @property
    def state(self) -> str:
        return repr(self.connection).split()[1]

    def write(self, data: bytes) -> None:
        self.states.append(self.state)
        self.incoming.write(data)

    def close(self) -> None:
        self.connection.connection_lost(None)

    abort = close

    def is_closing(self) -> bool:
        return False

    def peer_does(self, step: Callable[[], Any]) -> None:
        """The connection receives what the peer sends in this step."""
        with contextlib.suppress(ssl.SSLWantReadError):
            step()
        self.connection.data_received(self.outgoing.read())

    def open(self) -> None:
        self.connection.connection_made(self)
        while self.state == "handshake":
            self.peer_does(self.peer.do_handshake)
        self.peer_does(self.peer.do_handshake)


def test_a_connection_goes_through_its_states_in_order(loop: asyncio.AbstractEventLoop) -> None:
    async def main() -> None:
        below = Below()
        assert below.state == "new"
        below.open()
        assert below.state == "open"
        assert below.states == ["handshake", "open"]  # hello, and the answer that ends the handshake
        below.states.clear()
        below.transport.write(b"last words")
        below.transport.close()
        assert below.states == ["flushing", "shutdown"]  # the data, and close_notify
        assert below.state == "shutdown"
        assert below.peer.read() == b"last words"
        below.peer_does(below.peer.unwrap)
        assert below.state == "shutdown"
        await below.protocol.lost
        assert below.state == "over"
        assert below.protocol.calls == ["made", "eof", "lost"]

    loop.run_until_complete(main())


@pytest.mark.parametrize("state", ["new", "handshake", "open", "shutdown"])
def test_a_connection_is_aborted_in_any_state(loop: asyncio.AbstractEventLoop, state: str) -> None:
    async def main() -> None:
        below = Below()
        if state == "handshake":
            below.connection.connection_made(below)
        elif state != "new":
            below.open()
        if state == "shutdown":
            below.transport.close()
        assert below.state == state
        below.transport.abort()
        assert below.state == "over"
        if state == "new":
            below.connection.connection_made(below)  # the connection ends the transport below at once
        assert below.state == "over"
        if state in ("open", "shutdown"):
            await below.protocol.lost

    loop.run_until_complete(main())


def test_a_connection_that_is_aborted_while_ssl_writes_does_not_shut_down(
    loop: asyncio.AbstractEventLoop,
) -> None:
    made: list[Below] = []

    def sees_a_record(*_: Any) -> None:
        if made and made[0].state == "flushing":
            made[0].transport.abort()

    async def main() -> None:
        context = client_context()
        context._msg_callback = sees_a_record  # type: ignore[attr-defined]
        made.append(below := Below(context))
        below.open()
        below.transport.write(b"last words")
        below.transport.close()
        assert below.state == "over"
        await below.protocol.lost
        assert below.protocol.calls == ["made", "lost"]
        made.clear()

    loop.run_until_complete(main())
