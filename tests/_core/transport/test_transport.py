"""Transports as objects: what programs may hang on them, and that nothing of it keeps them."""

from __future__ import annotations

import asyncio
import gc
import weakref
from typing import Any

import pytest

from tests.streams import BufferedRecorder, Recorder, connect, receive, turns
from tests.tls import peers
from uringloop._core.lifetime.counters import DEBUG_BUILD


@pytest.mark.contract
def test_programs_can_set_attributes_on_a_transport(loop: asyncio.AbstractEventLoop) -> None:
    async def main() -> None:
        protocol, peer = await connect()
        with peer:
            transport = protocol.transport
            transport.what_a_program_hangs_on_it = 1
            assert vars(transport)["what_a_program_hangs_on_it"] == 1
            del transport.what_a_program_hangs_on_it
            assert not hasattr(transport, "what_a_program_hangs_on_it")
            transport.close()
            await protocol.lost

    loop.run_until_complete(main())


@pytest.mark.contract
def test_is_closing_and_the_private_closing_attribute_agree(loop: asyncio.AbstractEventLoop) -> None:
    async def main() -> None:
        protocol, peer = await connect()
        with peer:
            transport = protocol.transport
            assert not transport.is_closing()
            assert not transport._closing
            transport.close()
            assert transport.is_closing()
            assert transport._closing
            await protocol.lost

    loop.run_until_complete(main())


@pytest.mark.contract
def test_a_method_of_one_transport_can_be_replaced(loop: asyncio.AbstractEventLoop) -> None:
    async def main() -> None:
        protocol, peer = await connect()
        with peer:
            transport = protocol.transport
            seen: list[bytes] = []
            write = transport.write

            def replaced(data: bytes) -> None:
                seen.append(data)
                write(data)

            transport.write = replaced
            transport.write(b"seen")
            del transport.write
            transport.write(b"unseen")
            assert seen == [b"seen"]
            assert await receive(peer, 10) == b"seenunseen"
            transport.close()
            await protocol.lost

    loop.run_until_complete(main())


@pytest.mark.contract
def test_a_transport_is_collected_with_its_attributes(loop: asyncio.AbstractEventLoop) -> None:
    class Attached:
        """Looks at its transport when it goes, as late as the collector lets it."""

        def __init__(self, transport: Any, seen: list[bool]) -> None:
            self.transport = transport
            self.seen = seen

        def __del__(self) -> None:
            self.seen.append(hasattr(self.transport, "no_such_attribute"))

    seen: list[bool] = []

    async def main() -> weakref.ref[Any]:
        protocol, peer = await connect()
        with peer:
            transport = protocol.transport
            transport.attached = Attached(transport, seen)
            transport.itself = transport
            transport.close()
            await protocol.lost
        return weakref.ref(transport)

    gone = loop.run_until_complete(main())
    loop.close()  # what is in the kernel keeps the transport until it has ended
    gc.collect()
    assert gone() is None
    assert seen == [False]


@pytest.mark.contract
def test_data_written_just_before_an_abort_arrives(loop: asyncio.AbstractEventLoop) -> None:
    async def main() -> None:
        protocol, peer = await connect()
        with peer:
            protocol.transport.write(b"last ")
            protocol.transport.write(b"words")
            protocol.transport.abort()
            assert await receive(peer, 10) == b"last words"
            await protocol.lost

    loop.run_until_complete(main())


@pytest.mark.contract
@pytest.mark.parametrize("with_tls", [False, True])
def test_write_buffer_limits_may_be_any_numbers(loop: asyncio.AbstractEventLoop, with_tls: bool) -> None:
    """As on asyncio's own loop: fractions, infinity, and what is larger than memory."""

    async def main() -> None:
        if with_tls:
            protocol, end = await peers.connect()
            peer = end.sock
        else:
            protocol, peer = await connect()
        with peer:
            transport = protocol.transport
            for given, expected in [
                ({"high": 10.5}, (2.0, 10.5)),
                ({"low": 3.5}, (3.5, 14.0)),
                ({"high": float("inf"), "low": 0}, (0, float("inf"))),
                ({"high": 1 << 70}, (1 << 68, 1 << 70)),
                ({"high": 1 << 63, "low": True}, (True, 1 << 63)),
                ({"high": 40}, (10, 40)),
            ]:
                transport.set_write_buffer_limits(**given)
                assert transport.get_write_buffer_limits() == expected
                transport.write(b"few")
                await turns()
            for wrong, error in [
                ({"high": float("inf")}, ValueError),
                ({"high": float("nan"), "low": 0}, ValueError),
                ({"high": -1}, ValueError),
                ({"high": 1, "low": 2}, ValueError),
                ({"high": "a"}, TypeError),
                ({"high": [], "low": 5}, TypeError),
            ]:
                with pytest.raises(error):
                    transport.set_write_buffer_limits(**wrong)
            assert transport.get_write_buffer_limits() == (10, 40)
            assert protocol.flow == []
            transport.abort()
            await protocol.lost

    loop.run_until_complete(main())


@pytest.mark.contract
def test_a_fractional_water_mark_is_compared_exactly(loop: asyncio.AbstractEventLoop) -> None:
    async def main() -> None:
        protocol, peer = await connect(family="unix")
        with peer:
            transport = protocol.transport
            while not transport.get_write_buffer_size():
                transport.write(bytes(100_000))
            size = transport.get_write_buffer_size()
            transport.set_write_buffer_limits(high=size + 0.5)
            told = len(protocol.flow)
            transport.set_write_buffer_limits(high=size - 0.5)
            assert told == (1 if size > 64 << 10 else 0)
            assert protocol.flow == ["pause"]
            transport.abort()
            await protocol.lost

    loop.run_until_complete(main())


@pytest.mark.contract
@pytest.mark.parametrize(
    ("given", "message", "error"),
    [
        (
            b"constant",
            "Fatal read error on socket transport",
            "TypeError('recv_into() argument 1 must be read-wr",
        ),
        (
            "text",
            "Fatal read error on socket transport",
            "TypeError('recv_into() argument 1 must be read-write by",
        ),
        (
            None,
            "Fatal error: protocol.get_buffer() call failed.",
            "TypeError(\"object of type 'NoneType' has no len()",
        ),
        (
            bytearray(),
            "Fatal error: protocol.get_buffer() call failed.",
            "RuntimeError('get_buffer() returned an empty",
        ),
        (
            b"",
            "Fatal error: protocol.get_buffer() call failed.",
            "RuntimeError('get_buffer() returned an empty buff",
        ),
    ],
)
def test_a_wrong_result_of_get_buffer_ends_the_connection(
    loop: asyncio.AbstractEventLoop, given: Any, message: str, error: str
) -> None:
    class Offering(BufferedRecorder):
        def get_buffer(self, sizehint: int) -> Any:
            return given

    async def main() -> None:
        protocol, peer = await connect(Offering)
        with peer:
            peer.send(b"data")
            lost = await protocol.lost
            assert repr(lost).startswith(error)
            (report,) = reports
            assert report["message"] == message and report["exception"] is lost
            assert protocol.calls == ["made", "lost"]
        reports.clear()

    reports: list[dict[str, Any]] = []
    loop.set_exception_handler(lambda _, report: reports.append(report))
    loop.run_until_complete(main())


class Stated(Recorder):
    """Remembers the states in which its transport made its calls."""

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self.states = [transport._state_name]

    def connection_lost(self, error: Exception | None) -> None:
        self.states.append(self.transport._state_name)
        super().connection_lost(error)


async def end_of(protocol: Stated, *ways: str) -> list[str]:
    """Ends the transport by calling these methods; the states that it was in."""
    for way in ways:
        getattr(protocol.transport, way)()
        protocol.states.append(protocol.transport._state_name)
    await protocol.lost
    while protocol.transport._state_name == "releasing":  # its receive leaves the kernel
        await turns(1)
    return [*protocol.states, protocol.transport._state_name]


@pytest.mark.parametrize("way", ["close", "abort"])
def test_an_ended_connection_is_lost_then_released_then_closed(
    loop: asyncio.AbstractEventLoop, way: str
) -> None:
    async def main() -> None:
        protocol, peer = await connect(Stated)
        with peer:
            assert await end_of(protocol, way, way) == ["open", "lost", "lost", "releasing", "closed"]

    loop.run_until_complete(main())


@pytest.mark.parametrize("way", ["the data leaves", "abort"])
def test_a_connection_is_in_state_closing_until_its_data_is_sent(
    loop: asyncio.AbstractEventLoop, way: str
) -> None:
    async def main() -> None:
        protocol, peer = await connect(Stated)
        with peer:
            while not protocol.flow:  # paused: the socket takes no more
                protocol.transport.write(bytes(1 << 20))
                await turns(1)
            size = protocol.transport.get_write_buffer_size()
            assert size > 0
            if way == "abort":
                states = await end_of(protocol, "close", "abort")
                assert states == ["open", "closing", "lost", "releasing", "closed"]
                return
            protocol.transport.close()
            assert protocol.transport._state_name == "closing"
            ended = asyncio.ensure_future(end_of(protocol))
            await receive(peer, 1 << 40)
            assert await ended == ["open", "releasing", "closed"]

    loop.run_until_complete(main())


@pytest.mark.skipif(not DEBUG_BUILD, reason="a release build does not check its states")
def test_a_debug_build_refuses_an_invalid_state_transition(loop: asyncio.AbstractEventLoop) -> None:
    async def main() -> None:
        protocol, peer = await connect(Stated)
        with peer:
            with pytest.raises(AssertionError, match="before the connection is lost: <StreamTransport open"):
                protocol.transport._call_connection_lost(None)
            assert protocol.calls == ["made"]
            assert await end_of(protocol, "abort") == ["open", "lost", "releasing", "closed"]

    loop.run_until_complete(main())
