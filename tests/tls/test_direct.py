"""OpenSSL is called directly for the data: what a program sees is what it sees where CPython's methods are called."""

from __future__ import annotations

import asyncio
import ctypes
import gc
import os
import ssl
import sys
import threading
from typing import Any

import pytest

from tests.streams import BufferedRecorder, Recorder
from tests.tls.peers import (
    Peer,
    client_context,
    connect,
    direct_or_skip,
    is_direct,
    lacks_some,
    leave,
    openssl,
    peer_of,
    plain_context,
    records,
    server_context,
    session_of,
)
from uringloop._core.cpython.canaries import state

KEY_UPDATE_REQUESTED = 1
NO_RENEGOTIATION = 1 << 30  # SSL_OP_NO_RENEGOTIATION


def test_the_path_is_chosen_by_connection(run: Any, side: str) -> None:
    async def main() -> None:
        protocol, peer = await connect(side=side)
        assert is_direct(protocol.transport) == state()["openssl"]
        await leave(protocol, peer)
        protocol, peer = await connect(side=side, context=plain_context(side))
        assert not is_direct(protocol.transport)
        await leave(protocol, peer)

    run(main())


class Traced(ssl.SSLObject):
    """Sees what is read."""

    seen = 0

    def read(self, len: int = 1024, buffer: Any = None) -> Any:
        data = super().read(len, buffer)
        Traced.seen += 1
        return data


def test_an_ssl_object_of_the_program_is_called(run: Any, side: str) -> None:
    async def main() -> None:
        context = server_context() if side == "server" else client_context()
        context.sslobject_class = Traced
        protocol, peer = await connect(side=side, context=context)
        await peer.send(b"hello")
        assert await protocol.until(5) == b"hello"
        assert Traced.seen and not is_direct(protocol.transport)
        await leave(protocol, peer)

    run(main())


async def both_ways(protocol: Any, peer: Peer, size: int = 50_000) -> None:
    message = os.urandom(size)
    before = len(protocol.received)
    protocol.transport.write(message)
    assert await peer.receive(size) == message
    sending = asyncio.ensure_future(peer.send(message))
    assert (await protocol.until(before + size))[before:] == message
    await sending


@pytest.mark.parametrize("kind", [Recorder, BufferedRecorder])
def test_the_keys_may_change(run: Any, side: str, kind: Any) -> None:
    """TLS 1.3: the peer updates its keys and requests the same of us."""
    library = openssl()

    async def main() -> None:
        protocol, peer = await connect(kind, side, version="TLSv1_3")
        for _ in range(3):
            await both_ways(protocol, peer)
            assert library.SSL_key_update(session_of(peer.tls), KEY_UPDATE_REQUESTED) == 1
            size = len(protocol.received)
            await peer.send(b"x")
            assert (await protocol.until(size + 1))[size:] == b"x"
        await both_ways(protocol, peer)
        await leave(protocol, peer)

    run(main())


def test_a_session_may_be_negotiated_again(run: Any) -> None:
    """TLS 1.2: the server requests it."""
    library = openssl()
    library.SSL_clear_options.argtypes = (ctypes.c_void_p, ctypes.c_uint64)

    async def main() -> None:
        protocol, peer = await connect(version="TLSv1_2")
        await both_ways(protocol, peer)
        session = session_of(peer.tls)
        library.SSL_clear_options(session, NO_RENEGOTIATION)
        assert library.SSL_renegotiate(session) == 1
        await peer.do(peer.tls.do_handshake)
        protocol.transport.write(b"meanwhile")
        assert await peer.receive(9) == b"meanwhile"
        while library.SSL_renegotiate_pending(session):
            await both_ways(protocol, peer)
        await both_ways(protocol, peer)
        await leave(protocol, peer)

    run(main())


CIPHERS = ("AES256-GCM-SHA384", "AES128-SHA256", "AES256-SHA384", "CHACHA20-POLY1305")


@pytest.mark.parametrize("cipher", CIPHERS)
@pytest.mark.parametrize("size", [1, 255, 16_384, 16_385, 300_000])
def test_records_of_every_length_are_sent_whole(run: Any, cipher: str, size: int) -> None:
    """How much longer a record is than its data depends on the cipher."""

    async def main() -> None:
        context = client_context(maximum_version=ssl.TLSVersion.TLSv1_2)
        context.set_ciphers(f"ECDHE-ECDSA-{cipher}")
        protocol, peer = await connect(context=context, version="TLSv1_2")
        assert protocol.transport.get_extra_info("cipher")[0] == f"ECDHE-ECDSA-{cipher}"
        for _ in range(3):
            message = os.urandom(size)
            protocol.transport.write(message)
            assert await peer.receive(size) == message
        await leave(protocol, peer)

    run(main())


def test_the_bytes_that_are_sent_are_records_and_no_more(run: Any) -> None:
    """Whether or not the first guess of their length was right."""

    async def main() -> None:
        for context in (client_context(), client_context(maximum_version=ssl.TLSVersion.TLSv1_2)):
            protocol, peer = await connect(context=context)
            for size in (1000, 1000, 20_000, 20_000):
                protocol.transport.write(bytes(size))
                got = b""
                while not got or sum(records(got)) // 23 < (size + 16383) // 16384 or lacks_some(got):
                    got += await peer.arrival()
                assert set(records(got)) == {23}
                peer.incoming.write(got)
                assert await peer.receive(size) == bytes(size)
            await leave(protocol, peer)

    run(main())


def test_what_a_paused_program_has_not_read_is_kept(run: Any, side: str) -> None:
    """In the order in which it came, also in many small arrivals."""

    async def main() -> None:
        protocol, peer = await connect(side=side, family="unix")
        protocol.transport.pause_reading()
        message = os.urandom(150_000)
        for at in range(0, len(message), 500):
            await peer.send(message[at : at + 500])
            await asyncio.sleep(0)
        assert not protocol.received
        waiting = protocol.transport.get_read_buffer_size()
        assert waiting > 50_000
        protocol.transport.resume_reading()
        assert await protocol.until(len(message)) == message
        assert protocol.transport.get_read_buffer_size() == 0
        await both_ways(protocol, peer, 1_000_000)
        await leave(protocol, peer)

    run(main())


def test_reading_stops_in_the_middle_of_an_arrival(run: Any) -> None:
    """A program that pauses after each piece, and resumes later."""

    class Hesitant(Recorder):
        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            self.transport.pause_reading()
            asyncio.get_running_loop().call_later(0.0001, self.transport.resume_reading)

    class HesitantBuffers(BufferedRecorder):
        sizes = (1000, 16384, 40_000)

        def buffer_updated(self, nbytes: int) -> None:
            super().buffer_updated(nbytes)
            self.transport.pause_reading()
            asyncio.get_running_loop().call_later(0.0001, self.transport.resume_reading)

    async def main(kind: Any) -> None:
        protocol, peer = await connect(kind)
        message = os.urandom(1_000_000)
        sending = asyncio.ensure_future(peer.send(message))
        assert await protocol.until(len(message)) == message
        await sending
        await leave(protocol, peer)

    run(main(Hesitant))
    run(main(HesitantBuffers))


def test_large_data_passes_through_tls_within_tls(run: Any, side: str) -> None:
    """Each layer decrypts what the layer below has just decrypted."""

    async def main() -> None:
        loop = asyncio.get_running_loop()
        protocol, outer = await connect(side=side)
        inner = peer_of(outer.sock, side)
        size = 3_000_000
        message = os.urandom(size)

        async def shake() -> None:
            while True:
                try:
                    inner.tls.do_handshake()
                except ssl.SSLWantReadError:
                    done = False
                else:
                    done = True
                if inner.outgoing.pending:
                    await outer.send(inner.outgoing.read())
                if done:
                    return
                inner.incoming.write(await outer.do(outer.tls.read, 1 << 16))

        shaking = asyncio.ensure_future(shake())
        context = server_context() if side == "server" else client_context()
        transport = await loop.start_tls(
            protocol.transport, protocol, context, server_side=side == "server",
            server_hostname=None if side == "server" else "localhost",
        )  # fmt: skip
        await shaking
        view = memoryview(message)
        while view:
            view = view[inner.tls.write(view) :]
        sending = asyncio.ensure_future(outer.send(inner.outgoing.read()))
        assert await protocol.until(size) == message
        await sending
        transport.abort()
        outer.sock.close()

    run(main())


def test_the_ssl_object_stays_usable(run: Any) -> None:
    """The program may call it in between, and keep it."""

    async def main() -> None:
        protocol, peer = await connect()
        tls = protocol.transport.get_extra_info("ssl_object")
        assert tls.pending() == 0 and tls.version() == "TLSv1.3"
        assert tls.write(b"by the program") == 14
        protocol.transport.write(b", by the transport")
        assert await peer.receive(32) == b"by the program, by the transport"
        with pytest.raises(ssl.SSLWantReadError):
            tls.read(10)
        await both_ways(protocol, peer)
        await leave(protocol, peer)
        del protocol
        await asyncio.sleep(0)
        gc.collect()
        with pytest.raises(ssl.SSLWantReadError):
            tls.read(10)
        assert tls.write(b"to no one") == 9
        assert tls.getpeercert()["subject"]

    run(main())


def test_other_threads_may_ask_the_session(run: Any) -> None:
    """What it is, not for its data: a transport belongs to its loop's thread."""
    answers: set[Any] = set()
    enough = threading.Event()

    async def main() -> None:
        protocol, peer = await connect()
        tls = protocol.transport.get_extra_info("ssl_object")

        def ask() -> None:
            while not enough.is_set():
                answers.add((tls.version(), tls.cipher(), tls.pending() >= 0, len(tls.getpeercert(True))))

        thread = threading.Thread(target=ask)
        thread.start()
        try:
            for _ in range(5):
                await both_ways(protocol, peer, 500_000)
        finally:
            enough.set()
            thread.join()
        await leave(protocol, peer)

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        run(main())
    finally:
        sys.setswitchinterval(before)
    assert len(answers) == 1


def test_python_cannot_make_one_of_a_session_that_has_begun(loop: asyncio.AbstractEventLoop) -> None:
    direct_or_skip()
    from uringloop._core.tls.direct_records import DirectRecords

    context = client_context()
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    tls = context.wrap_bio(incoming, outgoing, server_hostname="localhost")
    other = ssl.MemoryBIO()
    for parts in (
        (None, incoming, outgoing),
        (tls, outgoing, incoming),
        (tls, other, outgoing),
        (tls, tls, tls),
    ):
        with pytest.raises(TypeError, match="OpenSSL cannot be called"):
            DirectRecords(*parts)  # type: ignore[arg-type]
    DirectRecords(tls, incoming, outgoing)
    with pytest.raises(TypeError, match="OpenSSL cannot be called"):
        DirectRecords(tls, incoming, outgoing)
    tls = context.wrap_bio(incoming, outgoing, server_hostname="localhost")
    with pytest.raises(ssl.SSLWantReadError):
        tls.do_handshake()
    with pytest.raises(TypeError, match="OpenSSL cannot be called"):
        DirectRecords(tls, incoming, outgoing)  # its first message is in `outgoing`
