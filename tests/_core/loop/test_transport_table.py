"""The loop knows which transport has which descriptor, and keeps none of them alive."""

from __future__ import annotations

import asyncio
import gc
import warnings
from typing import Any

import pytest

from tests.streams import Recorder, connect

pytestmark = pytest.mark.engines("uring", "epoll")


def test_a_descriptor_is_its_transports_until_that_is_closed(loop: Any) -> None:
    async def main() -> None:
        protocol, peer = await connect(Recorder)
        with peer:
            transport = protocol.transport
            number = transport.get_extra_info("socket").fileno()
            assert loop._transports.get(number) is transport
            assert len(loop._transports) == 1
            with pytest.raises(RuntimeError, match="is used by transport"):
                loop.add_reader(number, print)
            transport.close()
            await protocol.lost
        assert loop._transports.get(number) is None
        assert len(loop._transports) == 0

    loop.run_until_complete(main())


def test_a_dropped_transport_leaves_the_table(loop: Any) -> None:
    async def main() -> None:
        protocol, peer = await connect(Recorder)
        with peer:
            protocol.transport.pause_reading()
            await asyncio.sleep(0.001)
            number = protocol.transport.get_extra_info("socket").fileno()
            with warnings.catch_warnings(record=True):
                warnings.simplefilter("always")
                protocol.transport = None
                del protocol
                gc.collect()
            assert loop._transports.get(number) is None
            assert len(loop._transports) == 0

    loop.run_until_complete(main())


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_warning_that_is_an_error_leaves_no_transport_behind(loop: Any) -> None:
    async def main() -> None:
        protocol, peer = await connect(Recorder)
        with peer:
            protocol.transport.pause_reading()
            await asyncio.sleep(0.001)
            number = protocol.transport.get_extra_info("socket").fileno()
            with warnings.catch_warnings():
                warnings.simplefilter("error", ResourceWarning)
                protocol.transport = None
                del protocol
                gc.collect()
            assert loop._transports.get(number) is None

    loop.run_until_complete(main())


@pytest.mark.parametrize("number", [-1, 100_000, 2**31 - 1, 2**40])
def test_impossible_descriptors_have_no_transport(loop: Any, number: int) -> None:
    assert loop._transports.get(number) is None
