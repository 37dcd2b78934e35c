"""Transports as objects: what programs may hang on them, and that nothing of it keeps them."""

from __future__ import annotations

import asyncio
import gc
import weakref
from typing import Any

import pytest

from tests.streams import connect, receive


@pytest.mark.contract
def test_a_transport_takes_attributes(loop: asyncio.AbstractEventLoop) -> None:
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
def test_a_closing_transport_says_so_under_both_names(loop: asyncio.AbstractEventLoop) -> None:
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
def test_a_transport_is_collected_with_what_hangs_on_it(loop: asyncio.AbstractEventLoop) -> None:
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
def test_what_was_written_just_before_an_abort_arrives(loop: asyncio.AbstractEventLoop) -> None:
    async def main() -> None:
        protocol, peer = await connect()
        with peer:
            protocol.transport.write(b"last ")
            protocol.transport.write(b"words")
            protocol.transport.abort()
            assert await receive(peer, 10) == b"last words"
            await protocol.lost

    loop.run_until_complete(main())
