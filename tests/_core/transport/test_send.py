"""Writing to a stream: order, copies, flow control, and the end of what was queued."""

from __future__ import annotations

import array
import asyncio
import os
import socket
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.streams import Recorder, connect, receive, reset, settled, turns

BIG = 5 << 20


@pytest.fixture
def run(loop: asyncio.AbstractEventLoop) -> Callable[..., Any]:
    return lambda main: loop.run_until_complete(asyncio.wait_for(main, 30))


@pytest.fixture(params=["tcp", "unix"])
def family(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.mark.contract
def test_written_data_arrives_in_order(run: Any, family: str) -> None:
    async def main() -> None:
        protocol, peer = await connect(family=family)
        with peer:
            parts = [b"one ", bytearray(b"two "), memoryview(b"three "), b"", memoryview(b"a four b")[2:7]]
            for part in parts:
                protocol.transport.write(part)
            protocol.transport.writelines([b"five ", bytearray(b"six "), memoryview(b"seven")])
            protocol.transport.writelines([])
            protocol.transport.close()
            assert await receive(peer, 1000) == b"one two three four five six seven"
            assert await protocol.lost is None

    run(main())


def test_write_accepts_memoryviews_of_any_layout(run: Any) -> None:
    """More than asyncio takes: what is not contiguous."""

    async def main() -> None:
        protocol, peer = await connect()
        with peer:
            numbers = array.array("i", [1, 2, 3])
            protocol.transport.write(memoryview(bytes(range(10)))[::2])
            protocol.transport.write(memoryview(numbers))
            protocol.transport.writelines([numbers, memoryview(b"abcdef")[::-1], bytearray(b"x")])
            protocol.transport.close()
            expected = bytes(range(0, 10, 2)) + 2 * numbers.tobytes() + b"fedcbax"
            assert await receive(peer, 1000) == expected
            await protocol.lost

    run(main())


@pytest.mark.contract
@pytest.mark.parametrize("wrong", ["text", object(), 5, [b"x"]])
def test_write_refuses_objects_that_are_not_buffers(run: Any, wrong: Any) -> None:
    async def main() -> None:
        protocol, peer = await connect()
        with peer:
            with pytest.raises(TypeError, match="data argument must be a"):
                protocol.transport.write(wrong)
            with pytest.raises(TypeError):
                protocol.transport.writelines([wrong])
            protocol.transport.abort()
            await protocol.lost

    run(main())


def test_a_program_may_change_its_data_right_after_write(run: Any, family: str) -> None:
    async def main() -> None:
        protocol, peer = await connect(family=family)
        with peer:
            data = bytearray(b"a" * (1 << 20))
            protocol.transport.write(data)
            data[:] = b"b" * len(data)
            protocol.transport.write(memoryview(data))
            data[:] = b"c" * len(data)
            protocol.transport.writelines([data, b"end"])
            data[:] = b"d" * len(data)
            data.clear()  # nothing holds its memory
            protocol.transport.close()
            size = 1 << 20
            assert await receive(peer, 4 * size) == b"a" * size + b"b" * size + b"c" * size + b"end"
            await protocol.lost

    run(main())


@pytest.mark.contract
def test_close_sends_queued_data(run: Any, family: str) -> None:
    async def main() -> None:
        protocol, peer = await connect(family=family)
        with peer:
            data = os.urandom(BIG)
            protocol.transport.write(data)
            protocol.transport.close()
            assert protocol.transport.is_closing() and protocol.transport.get_write_buffer_size() > 0
            assert await receive(peer, 2 * BIG) == data
            assert await protocol.lost is None

    run(main())


@pytest.mark.contract
def test_write_eof_ends_the_stream_after_the_queued_data(run: Any, family: str) -> None:
    async def main() -> None:
        protocol, peer = await connect(family=family)
        with peer:
            data = os.urandom(1 << 20)
            protocol.transport.write(data)
            assert protocol.transport.can_write_eof()
            protocol.transport.write_eof()
            protocol.transport.write_eof()
            for write in (protocol.transport.write, lambda data: protocol.transport.writelines([data])):
                with pytest.raises(RuntimeError, match=r"Cannot call write(lines)?\(\) after write_eof\(\)"):
                    write(b"more")
            assert await receive(peer, 2 << 20) == data
            # The other direction is open still.
            peer.send(b"answer")
            assert await protocol.until(6) == b"answer"
            peer.close()
            assert await protocol.lost is None

    run(main())


@pytest.mark.contract
def test_write_eof_ends_the_stream_at_once_if_the_queue_is_empty(run: Any) -> None:
    async def main() -> None:
        protocol, peer = await connect()
        with peer:
            protocol.transport.write_eof()
            assert await receive(peer, 1) == b""
            protocol.transport.close()
            protocol.transport.write_eof()
            assert await protocol.lost is None

    run(main())


# Flow control


@pytest.mark.contract
def test_write_pauses_the_writer_before_it_returns(run: Any, engine: str, family: str) -> None:
    async def main() -> None:
        protocol, peer = await connect(family=family)
        with peer:
            protocol.transport.write(bytes(BIG))
            assert protocol.flow == ["pause"]
            protocol.transport.write(bytes(BIG))
            protocol.transport.writelines([bytes(BIG)])
            assert protocol.flow == ["pause"]
            assert len(await receive(peer, 3 * BIG)) == 3 * BIG
            await protocol.when(lambda: "resume" in protocol.flow)
            while engine == "fake" and protocol.transport.get_write_buffer_size():
                await turns(1)  # it may report the last send turns later
            assert protocol.flow == ["pause", "resume"] and protocol.transport.get_write_buffer_size() == 0
            protocol.transport.abort()
            await protocol.lost

    run(main())


def test_writelines_pauses_the_writer_before_it_returns(run: Any, family: str) -> None:
    """asyncio forgot to, up to 3.13.0."""

    async def main() -> None:
        protocol, peer = await connect(family=family)
        with peer:
            protocol.transport.writelines([bytes(BIG), bytes(BIG)])
            assert protocol.flow == ["pause"]
            protocol.transport.abort()
            await protocol.lost

    run(main())


@pytest.mark.contract
def test_drain_waits_right_after_a_large_write(run: Any) -> None:
    async def main() -> None:
        left, peer = socket.socketpair()
        left.setblocking(False)
        peer.setblocking(False)
        with peer:
            _, writer = await asyncio.open_unix_connection(sock=left)
            writer.write(bytes(BIG))
            drained = asyncio.ensure_future(writer.drain())
            await settled(writer.transport)
            assert not drained.done()
            await receive(peer, BIG)
            await drained
            writer.close()
            await writer.wait_closed()

    run(main())


@pytest.mark.contract
def test_set_write_buffer_limits_computes_the_limit_not_given(run: Any) -> None:
    async def main() -> None:
        protocol, peer = await connect(family="unix")
        with peer:
            transport = protocol.transport
            assert transport.get_write_buffer_limits() == (16384, 65536)
            transport.set_write_buffer_limits(high=100)
            assert transport.get_write_buffer_limits() == (25, 100)
            transport.set_write_buffer_limits(low=100)
            assert transport.get_write_buffer_limits() == (100, 400)
            transport.set_write_buffer_limits(high=0)
            assert transport.get_write_buffer_limits() == (0, 0)
            with pytest.raises(ValueError, match="must be >= low"):
                transport.set_write_buffer_limits(high=1, low=2)
            transport.set_write_buffer_limits()
            transport.write(bytes(BIG))
            transport.abort()
            await protocol.lost

    run(main())


@pytest.mark.contract
def test_lowering_the_limits_pauses_the_writer(run: Any) -> None:
    async def main() -> None:
        protocol, peer = await connect(family="unix")
        with peer:
            protocol.transport.set_write_buffer_limits(high=4 * BIG)
            protocol.transport.write(bytes(BIG))
            assert protocol.flow == []
            await settled(protocol.transport)
            protocol.transport.set_write_buffer_limits(high=0)
            assert protocol.flow == ["pause"]
            await receive(peer, BIG)
            await protocol.when(lambda: "resume" in protocol.flow)
            protocol.transport.abort()
            await protocol.lost

    run(main())


@pytest.mark.contract
def test_data_written_in_resume_writing_is_sent_before_the_connection_closes(run: Any) -> None:
    class Refiller(Recorder):
        def resume_writing(self) -> None:
            super().resume_writing()
            self.transport.write(b"last")

    async def main() -> None:
        protocol, peer = await connect(Refiller, "unix")
        with peer:
            protocol.transport.write(bytes(BIG))
            protocol.transport.close()
            assert (await receive(peer, 2 * BIG))[BIG:] == b"last"
            assert await protocol.lost is None

    run(main())


@pytest.mark.contract
def test_exceptions_of_pause_writing_and_resume_writing_are_reported(run: Any, loop: Any) -> None:
    class Careless(Recorder):
        def pause_writing(self) -> None:
            super().pause_writing()
            raise ValueError("pause")

        def resume_writing(self) -> None:
            super().resume_writing()
            raise ValueError("resume")

    reports: list[dict[str, Any]] = []

    async def main() -> None:
        loop.set_exception_handler(lambda loop, context: reports.append(context))
        protocol, peer = await connect(Careless, "unix")
        with peer:
            protocol.transport.write(bytes(BIG))
            assert len(await receive(peer, BIG)) == BIG
            await protocol.when(lambda: "resume" in protocol.flow)
            messages = [(report["message"], str(report["exception"])) for report in reports]
            assert messages == [
                ("protocol.pause_writing() failed", "pause"),
                ("protocol.resume_writing() failed", "resume"),
            ]
            assert all(report["protocol"] is protocol for report in reports)
            reports.clear()
            protocol.transport.close()
            assert await protocol.lost is None

    run(main())


# Failures


@pytest.mark.contract
def test_abort_drops_queued_data(run: Any, family: str) -> None:
    async def main() -> None:
        protocol, peer = await connect(family=family)
        with peer:
            protocol.transport.write(bytes(4 * BIG))
            protocol.transport.abort()
            assert protocol.transport.is_closing() and protocol.transport.get_write_buffer_size() == 0
            assert protocol.calls == ["made"], "told in a later turn"
            assert await protocol.lost is None
            try:
                assert len(await receive(peer, 4 * BIG)) < 4 * BIG
            except ConnectionResetError:
                pass

    run(main())


@pytest.mark.contract
def test_abort_ends_a_close_that_cannot_finish(run: Any, family: str) -> None:
    async def main() -> None:
        protocol, peer = await connect(family=family)
        with peer:
            protocol.transport.write(bytes(4 * BIG))
            protocol.transport.close()
            await settled(protocol.transport)
            assert protocol.calls == ["made"]
            protocol.transport.abort()
            protocol.transport.abort()
            assert await protocol.lost is None

    run(main())


@pytest.mark.contract
def test_a_reset_while_sending_ends_the_connection_with_an_error(run: Any) -> None:
    async def main() -> None:
        protocol, peer = await connect()
        protocol.transport.pause_reading()
        protocol.transport.write(bytes(4 * BIG))
        await settled(protocol.transport)
        reset(peer)
        assert isinstance(await protocol.lost, ConnectionResetError | BrokenPipeError)
        assert protocol.calls == ["made", "lost"]

    run(main())


@pytest.mark.contract
def test_writes_after_close_are_ignored_and_many_of_them_are_logged(
    run: Any, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        protocol, peer = await connect()
        with peer:
            protocol.transport.close()
            await protocol.lost
            for _ in range(3):
                protocol.transport.write(b"x")
            protocol.transport.write_eof()
            protocol.transport.close()
            protocol.transport.abort()
            protocol.transport.pause_reading()
            protocol.transport.resume_reading()
            assert not caplog.records
            for _ in range(3):
                protocol.transport.write(b"x")
            assert {record.getMessage() for record in caplog.records} == {"socket.send() raised exception."}
            caplog.clear()

    run(main())


@pytest.mark.contract
def test_a_send_that_fails_at_once_is_reported_in_a_later_turn(run: Any) -> None:
    async def main() -> None:
        protocol, peer = await connect(family="unix")
        peer.close()
        protocol.transport.pause_reading()
        protocol.transport.write(bytes(BIG))
        assert protocol.calls == ["made"]
        assert isinstance(await protocol.lost, BrokenPipeError)

    run(main())


# Against a model


writes = st.lists(
    st.tuples(st.sampled_from(["write", "writelines", "turn", "read"]), st.integers(0, 200_000)), max_size=30
)


@pytest.mark.contract
@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=writes, ends=st.sampled_from(["close", "write_eof"]))
def test_writes_in_any_sequence_arrive_whole_and_in_order(
    run: Any, engine: str, steps: list[tuple[str, int]], ends: str
) -> None:
    async def main() -> None:
        protocol, peer = await connect(family="unix")
        expected, got = bytearray(), bytearray()
        with peer:
            for number, (step, size) in enumerate(steps):
                data = bytes([number]) * size
                if step == "turn":
                    await asyncio.sleep(0)
                elif step == "read":
                    try:
                        got += peer.recv(max(size, 1))
                    except BlockingIOError:
                        pass
                elif step == "write":
                    protocol.transport.write(data)
                    expected += data
                else:
                    # asyncio's own loop spins for ever if an empty piece is the last that waits, since Python 3.12.
                    last = data or (b"." if engine == "asyncio" else b"")
                    protocol.transport.writelines([data, b"-", last])
                    expected += data + b"-" + last
            getattr(protocol.transport, ends)()
            got += await receive(peer, 1 << 30)
            assert got == expected
            protocol.transport.close()
            assert await protocol.lost is None

    run(main())


@pytest.mark.engines("uring", "epoll")  # a send of the fake one may be short
def test_writes_of_one_turn_leave_in_one_send(loop: Any, feature: Any) -> None:
    """What is written in one turn leaves in one send."""

    async def main() -> int:
        protocol, peer = await connect(family="unix")
        with peer:
            await settled(protocol.transport)
            before = loop._counts()["submitted"]
            for _ in range(50):
                protocol.transport.write(b"0123456789")
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            assert peer.recv(1000) == 50 * b"0123456789"
            submitted: int = loop._counts()["submitted"] - before
            protocol.transport.close()
            await protocol.lost
        return submitted

    sent = loop.run_until_complete(main())
    if feature("quiet_send"):
        assert sent == 1


@pytest.mark.parametrize("pieces", [1, 5])
def test_data_larger_than_an_entry_can_hold_is_sent_in_parts(run: Any, pieces: int) -> None:
    """An entry's length has 32 bits: of 4 GiB and a little only the little left, and that was taken for all."""

    async def main() -> None:
        protocol, peer = await connect(family="unix")
        with peer:
            try:
                data = bytes(
                    (4 << 30) + 5 if pieces == 1 else 1 << 30
                )  # never touched: no memory is behind it
            except MemoryError:
                pytest.skip("no room for 4 GiB, not even of addresses")
            protocol.transport.set_write_buffer_limits(high=6 << 30)
            for _ in range(pieces):
                protocol.transport.write(data)
            await turns(5)
            unsent = protocol.transport.get_write_buffer_size()
            assert len(data) * pieces - unsent < 100 << 20
            assert await receive(peer, 5) == bytes(5)
            protocol.transport.abort()
            await protocol.lost

    run(main())
