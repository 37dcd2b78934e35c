"""The answers a datagram transport gathers: whole, in order, and each by itself whatever the kernel is given."""

from __future__ import annotations

import asyncio
import errno
import functools
import os
import socket
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.datagrams import Endpoints, Recorder, run_with_endpoints

HOME = ("127.0.0.1", 0)
UDP_SEGMENT, UDP_GRO, SO_NO_CHECK = 103, 104, 11


@pytest.fixture
def run(loop: asyncio.AbstractEventLoop) -> Callable[..., Any]:
    return functools.partial(run_with_endpoints, loop)


@pytest.fixture
def peers() -> Iterator[list[socket.socket]]:
    """Plain sockets that ask, and are answered."""
    made = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(3)]
    for sock in made:
        sock.bind(HOME)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
        sock.settimeout(10)
    yield made
    for sock in made:
        sock.close()


class Answering(Recorder):
    """Sends `answers` once it was asked: (data, address)."""

    answers: list[tuple[bytes, Any]]

    def datagram_received(self, data: bytes, addr: Any) -> None:
        super().datagram_received(data, addr)
        for answer, address in self.answers:
            self.transport.sendto(answer, address)


async def ask(endpoints: Endpoints, sock: socket.socket, answers: list[tuple[bytes, Any]]) -> Any:
    """An endpoint that was asked, and has answered."""
    server = await endpoints.make(Answering, local_addr=HOME)
    server.answers = answers
    sock.sendto(b"?", server.transport.get_extra_info("sockname"))
    await server.until(lambda: server.received)
    return server


def numbered(sizes: list[int]) -> list[bytes]:
    return [(b"%d." % number + b"x" * size)[:size] for number, size in enumerate(sizes)]


SIZES = {
    "alike": [100] * 20,
    "more than are gathered at once": [10] * 150,
    "more than one message carries": [1400] * 60,
    "a smaller one behind each run": [500, 500, 200, 500, 500, 500, 1, 500],
    "growing": list(range(1, 40)),
    "shrinking": list(range(40, 1, -1)),
    "larger than packets": [9000] * 12,
    "the largest": [65_507, 65_507, 3],
}


@pytest.mark.contract
@pytest.mark.parametrize("sizes", SIZES.values(), ids=SIZES)
def test_each_answer_arrives_as_it_was_sent(run: Any, peers: Any, sizes: list[int]) -> None:
    async def main(endpoints: Endpoints) -> None:
        answers = numbered(sizes)
        await ask(endpoints, peers[0], [(answer, peers[0].getsockname()) for answer in answers])
        assert [peers[0].recv(70_000) for _ in answers] == answers

    run(main)


@pytest.mark.parametrize("sizes", [[50, 0, 50, 50, 0, 0, 50], [0] * 5], ids=["between", "alone"])
def test_empty_answers_arrive(run: Any, peers: Any, sizes: list[int]) -> None:
    """Stock asyncio sends none before 3.13."""

    async def main(endpoints: Endpoints) -> None:
        answers = numbered(sizes)
        await ask(endpoints, peers[0], [(answer, peers[0].getsockname()) for answer in answers])
        assert [peers[0].recv(100) for _ in answers] == answers

    run(main)


@pytest.mark.contract
@pytest.mark.parametrize("order", ["in turn", "one after the other"])
def test_each_answer_goes_to_its_address(run: Any, peers: Any, order: str) -> None:
    async def main(endpoints: Endpoints) -> None:
        answers = [(b"%d" % (i % 10), peer.getsockname()) for peer in peers for i in range(30)]
        if order == "in turn":
            answers.sort(key=lambda answer: answer[0])
        await ask(endpoints, peers[0], answers)
        for peer in peers:
            expected = [data for data, address in answers if address == peer.getsockname()]
            assert [peer.recv(100) for _ in expected] == expected

    run(main)


def test_answers_of_one_size_leave_in_one_message(run: Any, peers: Any) -> None:
    """A receiver that takes what the kernel has not cut yet sees it."""

    async def main(endpoints: Endpoints) -> None:
        peers[0].setsockopt(socket.IPPROTO_UDP, UDP_GRO, 1)
        await ask(endpoints, peers[0], [(b"x" * 100, peers[0].getsockname())] * 10)
        assert len(peers[0].recv(70_000)) == (1000 if cuts() else 100)

    run(main)


def cuts() -> bool:
    from uringloop._core.kernel.probe import offered

    return offered()["udp_segment"]


@pytest.mark.contract
def test_answers_leave_one_by_one_if_the_kernel_cannot_segment(run: Any, peers: Any) -> None:
    """It does not without checksums."""

    class Unchecked(Answering):
        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, SO_NO_CHECK, 1)

    async def main(endpoints: Endpoints) -> None:
        server = await endpoints.make(Unchecked, local_addr=HOME)
        answers = numbered([100] * 10 + [20] * 10 + [100] * 3)
        server.answers = [(answer, peers[0].getsockname()) for answer in answers]
        for _ in range(3):
            peers[0].sendto(b"?", server.transport.get_extra_info("sockname"))
            await server.until(lambda: server.received)
            server.received.clear()
            assert [peers[0].recv(1000) for _ in answers] == answers
        assert server.errors == []

    run(main)


@pytest.mark.contract
@pytest.mark.parametrize("when", ["before", "in between"])
def test_a_udp_segment_size_set_by_the_program_is_obeyed(run: Any, peers: Any, when: str) -> None:
    def cut(server: Any) -> None:
        server.transport.get_extra_info("socket").setsockopt(socket.IPPROTO_UDP, UDP_SEGMENT, 40)

    class Cutting(Answering):
        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            if when == "before":
                cut(self)

    async def main(endpoints: Endpoints) -> None:
        server = await endpoints.make(Cutting, local_addr=HOME)
        server.answers = [(b"x" * 100, peers[0].getsockname())] * 3
        for time_asked in range(2):
            if time_asked:
                cut(server)
            peers[0].sendto(b"?", server.transport.get_extra_info("sockname"))
            await server.until(lambda: server.received)
            server.received.clear()
            expected = [40, 40, 20] * 3 if time_asked or when == "before" else [100] * 3
            assert [len(peers[0].recv(1000)) for _ in expected] == expected

    run(main)


@pytest.mark.contract
def test_an_answer_that_fails_is_reported_and_the_others_are_sent(run: Any, peers: Any) -> None:
    """No one can send to port 0; the others of its size stand around it."""

    async def main(endpoints: Endpoints) -> None:
        there = peers[0].getsockname()
        answers = [(b"a", there), (b"b", there), (b"x", HOME), (b"y", HOME), (b"c", there), (b"d", there)]
        server = await ask(endpoints, peers[0], answers)
        assert [peers[0].recv(100) for _ in range(4)] == [b"a", b"b", b"c", b"d"]
        assert [error.errno for error in server.errors] == [errno.EINVAL] * 2

    run(main)


@pytest.mark.contract
@pytest.mark.parametrize("end", ["close", "abort"])
def test_answers_given_before_close_or_abort_are_sent(run: Any, peers: Any, end: str) -> None:
    class Ending(Answering):
        def datagram_received(self, data: bytes, addr: Any) -> None:
            super().datagram_received(data, addr)
            getattr(self.transport, end)()

    async def main(endpoints: Endpoints) -> None:
        server = await endpoints.make(Ending, local_addr=HOME)
        server.answers = [(b"%d" % i, peers[0].getsockname()) for i in range(5)]
        peers[0].sendto(b"?", server.transport.get_extra_info("sockname"))
        assert await server.lost is None
        assert [peers[0].recv(100) for _ in range(5)] == [b"%d" % i for i in range(5)]

    run(main)


@pytest.mark.contract
def test_abort_after_a_failing_answer_still_reports_its_error(
    run: Any, peers: Any, caplog: pytest.LogCaptureFixture
) -> None:
    class Aborting(Answering):
        def datagram_received(self, data: bytes, addr: Any) -> None:
            super().datagram_received(data, addr)
            self.transport.abort()

    async def main(endpoints: Endpoints) -> None:
        server = await endpoints.make(Aborting, local_addr=HOME)
        server.answers = [(b"too large" * 10_000, peers[0].getsockname()), (b"small", peers[0].getsockname())]
        peers[0].sendto(b"?", server.transport.get_extra_info("sockname"))
        assert await server.lost is None
        assert [error.errno for error in server.errors] == [errno.EMSGSIZE]
        assert peers[0].recv(100) == b"small"

    run(main)
    assert caplog.records == []


@pytest.mark.contract
def test_an_answer_does_not_wait_for_slow_handlers(run: Any, peers: Any) -> None:
    class Slow(Recorder):
        def datagram_received(self, data: bytes, addr: Any) -> None:
            if self.received:  # the one before has been answered long since
                assert peers[0].recv(100, socket.MSG_DONTWAIT) == self.received[-1][0]
            super().datagram_received(data, addr)
            self.transport.sendto(data, addr)
            time.sleep(0.002)

    async def main(endpoints: Endpoints) -> None:
        server = await endpoints.make(Slow, local_addr=HOME)
        for i in range(5):
            peers[0].sendto(b"%d" % i, server.transport.get_extra_info("sockname"))
        await server.until(lambda: len(server.received) == 5)
        assert peers[0].recv(100) == b"4"

    run(main)


def test_an_interrupt_between_answers_loses_no_datagram(loop: Any, peers: Any) -> None:
    """Neither those before it, nor the datagrams behind it."""

    class Interrupted(Recorder):
        def datagram_received(self, data: bytes, addr: Any) -> None:
            super().datagram_received(data, addr)
            self.transport.sendto(data, addr)
            if data == b"2":
                raise KeyboardInterrupt

    transport, server = loop.run_until_complete(loop.create_datagram_endpoint(Interrupted, local_addr=HOME))
    for i in range(5):
        peers[0].sendto(b"%d" % i, transport.get_extra_info("sockname"))
    with pytest.raises(KeyboardInterrupt):
        loop.run_forever()
    assert [peers[0].recv(100) for _ in range(3)] == [b"0", b"1", b"2"]
    loop.run_until_complete(server.until(lambda: len(server.received) == 5))
    assert [peers[0].recv(100) for _ in range(2)] == [b"3", b"4"]
    transport.close()
    loop.run_until_complete(server.lost)


def test_gathered_answers_count_in_the_write_buffer_size(run: Any, peers: Any) -> None:
    seen: list[int] = []

    class Looking(Answering):
        def datagram_received(self, data: bytes, addr: Any) -> None:
            super().datagram_received(data, addr)
            seen.append(self.transport.get_write_buffer_size())

    async def main(endpoints: Endpoints) -> None:
        server = await endpoints.make(Looking, local_addr=HOME)
        server.answers = [(os.urandom(100), peers[0].getsockname())] * 3
        peers[0].sendto(b"?", server.transport.get_extra_info("sockname"))
        await server.until(lambda: seen)
        assert seen[0] >= 300
        assert server.transport.get_write_buffer_size() == 0

    run(main)
