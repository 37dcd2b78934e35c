"""How connections end where OpenSSL is called directly: as where CPython's methods are called."""

from __future__ import annotations

import asyncio
import itertools
import ssl
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from tests.streams import BufferedRecorder, Recorder
from tests.tls.peers import (
    Peer,
    connect,
    direct_or_skip,
    is_direct,
    lacks_some,
    leave,
    openssl,
    plain_context,
)

VERSIONS = ("TLSv1_2", "TLSv1_3")

Scenario = Callable[[Any, Peer], Awaitable[None]]


async def garbled(protocol: Any, peer: Peer) -> None:
    """A record of which one bit is wrong, after a good one."""
    peer.tls.write(b"good")
    good = peer.outgoing.read()
    peer.tls.write(b"evil")
    bad = bytearray(peer.outgoing.read())
    bad[-1] ^= 1
    await peer.loop.sock_sendall(peer.sock, good + bad)


async def no_record(protocol: Any, peer: Peer) -> None:
    await peer.loop.sock_sendall(peer.sock, b"GET / HTTP/1.1\r\n\r\n")


async def too_long(protocol: Any, peer: Peer) -> None:
    await peer.loop.sock_sendall(peer.sock, b"\x17\x03\x03\xff\xff" + bytes(65535))


async def truncated(protocol: Any, peer: Peer) -> None:
    """Half a record, and EOF."""
    peer.tls.write(b"whole")
    whole = peer.outgoing.read()
    peer.tls.write(b"half")
    await peer.loop.sock_sendall(peer.sock, whole + peer.outgoing.read()[:-7])
    peer.end()


async def goodbye(protocol: Any, peer: Peer) -> None:
    """Data, close_notify, and more that is none of the session's."""
    peer.tls.write(b"the end")
    with pytest.raises(ssl.SSLWantReadError):
        peer.tls.unwrap()
    await peer.loop.sock_sendall(peer.sock, peer.outgoing.read() + b"what follows is not read")


async def alert(protocol: Any, peer: Peer) -> None:
    """The peer finds a record of ours wrong, and says so."""
    protocol.transport.write(b"answer")
    data = bytearray(await peer.arrival())
    while lacks_some(data):
        data += await peer.arrival()
    data[-1] ^= 1
    peer.incoming.write(data)
    with pytest.raises(ssl.SSLError):
        while True:
            peer.tls.read(1)
    await peer.push()


async def plain_goodbye(protocol: Any, peer: Peer) -> None:
    peer.end()


SCENARIOS = {
    scenario.__name__: scenario
    for scenario in (garbled, no_record, too_long, truncated, goodbye, alert, plain_goodbye)
}


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", SCENARIOS)
@pytest.mark.parametrize("kind", [Recorder, BufferedRecorder])
def test_the_end_is_the_same_on_both_paths(
    run: Any, side: str, version: str, name: str, kind: Any, reports: list[dict[str, Any]]
) -> None:
    direct_or_skip()

    async def told(context: ssl.SSLContext | None) -> Any:
        protocol, peer = await connect(kind, side, version=version, context=context)
        assert is_direct(protocol.transport) == (context is None)
        await SCENARIOS[name](protocol, peer)
        error: Any = await protocol.lost
        calls = [name for name, _ in itertools.groupby(protocol.calls)]
        known = [(one["message"], type(one["exception"]), one["exception"].args) for one in reports]
        reports.clear()
        peer.sock.close()
        if error is None:
            return None, calls, bytes(protocol.received), known
        fields = [getattr(error, field, None) for field in ("args", "errno", "strerror", "library", "reason")]
        return (type(error), fields), calls, bytes(protocol.received), known

    async def main() -> None:
        direct = await told(None)
        assert direct == await told(plain_context(side))
        if name in ("garbled", "no_record", "too_long", "alert"):
            assert issubclass(direct[0][0], ssl.SSLError)
            assert direct[0][1][3] == "SSL"

    run(main())


@pytest.mark.parametrize("version", VERSIONS)
def test_no_error_of_one_connection_reaches_another(run: Any, version: str) -> None:
    async def main() -> None:
        broken, its_peer = await connect(version=version)
        whole, peer = await connect(version=version)
        await garbled(broken, its_peer)
        await broken.lost
        for _ in range(3):
            await peer.send(b"on")
            await asyncio.sleep(0)
        assert await whole.until(6) == b"ononon"
        whole.transport.write(b"and on")
        assert await peer.receive(6) == b"and on"
        its_peer.sock.close()
        await leave(whole, peer)

    run(main())


def test_errors_that_other_code_has_left_in_openssl_are_not_the_connections(run: Any) -> None:
    """CPython's own methods take them for the session's."""
    direct_or_skip()
    library = openssl()

    async def main() -> None:
        protocol, peer = await connect()
        for number in range(1, 4):
            peer.tls.write(b"0123456789")
            record = peer.outgoing.read()
            assert not library.BIO_new_file(b"/nowhere/at/all", b"r")
            await peer.loop.sock_sendall(peer.sock, record[:9])
            await asyncio.sleep(0.001)  # read: a part of a record is none
            assert not library.BIO_new_file(b"/nowhere/at/all", b"r")
            await peer.loop.sock_sendall(peer.sock, record[9:])
            assert await protocol.until(10 * number) == b"0123456789" * number
            protocol.transport.write(b"more")
            data = await peer.arrival()
            library.ERR_clear_error()  # `peer` calls CPython's methods
            peer.incoming.write(data)
            assert await peer.receive(4) == b"more"
        await leave(protocol, peer)

    run(main())
