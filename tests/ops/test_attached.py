"""Any io_uring operation, through python-liburing: an independent witness of what the kernel does."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import gc
import os
import select
import socket
import weakref
from pathlib import Path
from typing import Any

import liburing
import pytest

from uringloop import ops


def run(loop: Any, coroutine: Any) -> Any:
    return loop.run_until_complete(coroutine)


def test_one_operation(loop: Any, tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_bytes(b"0123456789")

    async def main() -> None:
        found = liburing.Statx()
        assert await ops.submit(liburing.io_uring_prep_statx, found, str(path)) == 0
        assert found.size == 10
        fd = os.open(path, os.O_RDWR)
        try:
            buffer = bytearray(4)
            assert await ops.submit(liburing.io_uring_prep_read, fd, buffer, 3) == 4
            assert buffer == b"3456"
            results = await asyncio.gather(
                *(ops.submit(liburing.io_uring_prep_write, fd, b"%d" % i, i) for i in range(10))
            )
            assert results == [1] * 10
        finally:
            os.close(fd)
        with pytest.raises(OSError) as raised:
            await ops.submit(liburing.io_uring_prep_read, 9999, bytearray(4), 0)
        assert raised.value.errno == errno.EBADF

    run(loop, main())
    assert path.read_bytes() == b"0123456789"


def test_more_operations_than_the_ring_has_entries(loop: Any) -> None:
    async def main() -> None:
        assert (
            await asyncio.gather(*(ops.submit(liburing.io_uring_prep_nop) for _ in range(2000))) == [0] * 2000
        )

    run(loop, main())


def test_cancelling_keeps_the_buffer_until_the_kernel_has_ended(loop: Any) -> None:
    class Buffer(bytearray):
        pass

    async def main() -> None:
        source, sink = os.pipe()
        buffer = Buffer(16)
        alive = weakref.ref(buffer)
        task = asyncio.ensure_future(ops.submit(liburing.io_uring_prep_read, source, buffer))
        await asyncio.sleep(0.01)
        with pytest.raises(BufferError):
            buffer.extend(b"more")
        task.cancel()
        del buffer
        with pytest.raises(asyncio.CancelledError):
            await task
        del task
        for _ in range(100):
            gc.collect()
            if alive() is None:
                break
            await asyncio.sleep(0.01)
        assert alive() is None
        os.write(sink, b"still there")
        assert os.read(source, 100) == b"still there"
        os.close(source)
        os.close(sink)

    run(loop, main())


def test_a_cancelled_accept_leaves_no_descriptor(loop: Any) -> None:
    async def main() -> None:
        with socket.create_server(("127.0.0.1", 0)) as server:
            for turns in range(6):
                task = asyncio.ensure_future(
                    ops.submit(liburing.io_uring_prep_accept, server.fileno(), None, 0)
                )
                with socket.create_connection(server.getsockname()):
                    for _ in range(turns):
                        await asyncio.sleep(0)
                    task.cancel()
                    try:
                        os.close(await task)
                    except asyncio.CancelledError:
                        pass
            await asyncio.sleep(0.05)

    run(loop, main())


def test_link_timeout(loop: Any) -> None:
    async def main() -> None:
        source, sink = os.pipe()
        with pytest.raises(TimeoutError):
            await ops.submit(liburing.io_uring_prep_read, source, bytearray(1), timeout=0.02)
        os.write(sink, b"x")
        assert await ops.submit(liburing.io_uring_prep_read, source, bytearray(1), timeout=10) == 1
        os.close(source)
        os.close(sink)

    run(loop, main())


def test_multishot(loop: Any) -> None:
    async def main() -> None:
        source, sink = os.pipe()
        seen = 0
        async with contextlib.aclosing(
            ops.multishot(liburing.io_uring_prep_poll_multishot, source, select.POLLIN)
        ) as polls:
            os.write(sink, b"x")
            async for completion in polls:
                assert completion.result & select.POLLIN
                os.read(source, 1)
                seen += 1
                if seen == 20:
                    break
                os.write(sink, b"x")
        assert await ops.submit(liburing.io_uring_prep_nop) == 0
        os.close(source)
        os.close(sink)
        with pytest.raises(OSError):
            async for _ in ops.multishot(liburing.io_uring_prep_poll_multishot, source, select.POLLIN):
                pass

    run(loop, main())


def test_a_ring_of_the_users_own(loop: Any) -> None:
    ring = liburing.Ring()
    liburing.io_uring_queue_init(4, ring)

    async def main() -> None:
        mine = ops.attach(ring)
        assert await asyncio.gather(*(mine.submit(liburing.io_uring_prep_nop) for _ in range(20))) == [0] * 20
        with pytest.raises(ValueError, match="no room"):
            async with mine.chain() as chain:
                for _ in range(5):
                    chain.submit(liburing.io_uring_prep_nop)
        assert "0 in the kernel" in repr(mine)
        mine.close()
        mine.close()
        with pytest.raises(RuntimeError):
            await mine.submit(liburing.io_uring_prep_nop)

    run(loop, main())
    sqe = liburing.io_uring_get_sqe(ring)  # still the user's
    liburing.io_uring_prep_nop(sqe)
    assert liburing.io_uring_submit(ring) == 1
    liburing.io_uring_queue_exit(ring)


def test_completions_across_the_end_of_the_queue(loop: Any, ring: Any) -> None:
    async def main() -> None:
        mine = ops.attach(ring)
        for count in (7, 5, 8, 3, 7, 6, 8):
            async with asyncio.timeout(10):
                found = await asyncio.gather(*(mine.submit(liburing.io_uring_prep_nop) for _ in range(count)))
            assert found == [0] * count
        mine.close()

    run(loop, main())


@pytest.mark.parametrize("ready", [False, True])
def test_a_completion_between_peek_and_count_is_not_missed(loop: Any, monkeypatch: Any, ready: bool) -> None:
    """Between asking for a completion and asking how many there are."""
    peek = liburing.io_uring_peek_cqe

    async def main() -> None:
        source, sink = os.pipe()
        mine = ops.attach()
        task = asyncio.ensure_future(mine.submit(liburing.io_uring_prep_read, source, bytearray(1)))
        await asyncio.sleep(0.01)

        def late(ring: Any, cqe: Any) -> Any:
            try:
                return peek(ring, cqe)
            finally:
                os.write(sink, b"x" if ready else b"")

        with monkeypatch.context() as patch:
            patch.setattr(liburing, "io_uring_peek_cqe", late)
            mine._walk()
        os.write(sink, b"x")
        assert await task == 1
        mine.close()
        os.close(source)
        os.close(sink)

    run(loop, main())


def test_a_ring_closed_while_an_operation_is_awaited(loop: Any, ring: Any) -> None:
    async def main() -> None:
        source, sink = os.pipe()
        mine = ops.attach(ring)
        task = asyncio.ensure_future(mine.submit(liburing.io_uring_prep_read, source, bytearray(1)))
        await asyncio.sleep(0)
        mine.close()
        with pytest.raises(OSError) as raised:
            await task
        assert raised.value.errno == errno.ECANCELED
        os.close(source)
        os.close(sink)

    run(loop, main())


def test_a_ring_that_its_user_closes_meanwhile(loop: Any, ring: Any) -> None:
    async def main() -> None:
        source, sink = os.pipe()
        mine = ops.attach(ring)
        task = asyncio.ensure_future(mine.submit(liburing.io_uring_prep_read, source, bytearray(1)))
        await asyncio.sleep(0)
        liburing.io_uring_queue_exit(ring)
        with pytest.raises(RuntimeError):
            await mine.submit(liburing.io_uring_prep_nop)
        mine.close()
        with pytest.raises(OSError) as raised:
            await task
        assert raised.value.errno == errno.ECANCELED
        os.close(source)
        os.close(sink)

    run(loop, main())


def test_a_ring_that_was_never_enabled(loop: Any) -> None:
    ring = liburing.Ring()
    liburing.io_uring_queue_init(8, ring, liburing.IORING_SETUP_R_DISABLED)

    async def main() -> None:
        mine = ops.attach(ring)
        with pytest.raises(OSError) as raised:
            await mine.submit(liburing.io_uring_prep_nop)
        assert raised.value.errno == errno.EBADFD
        mine.close()

    run(loop, main())
    liburing.io_uring_queue_exit(ring)


@pytest.mark.parametrize(
    "flags", ["SQPOLL", "SINGLE_ISSUER", "SINGLE_ISSUER DEFER_TASKRUN", "COOP_TASKRUN TASKRUN_FLAG"]
)
def test_rings_of_every_kind(loop: Any, flags: str) -> None:
    ring = liburing.Ring()
    liburing.io_uring_queue_init(
        8, ring, sum(getattr(liburing, f"IORING_SETUP_{name}") for name in flags.split())
    )

    async def main() -> None:
        source, sink = os.pipe()
        mine = ops.attach(ring)
        task = asyncio.ensure_future(mine.submit(liburing.io_uring_prep_read, source, bytearray(1)))
        assert await asyncio.gather(*(mine.submit(liburing.io_uring_prep_nop) for _ in range(6))) == [0] * 6
        os.write(sink, b"x")
        assert await task == 1
        mine.close()
        os.close(source)
        os.close(sink)

    run(loop, main())
    liburing.io_uring_queue_exit(ring)


def test_objects_that_are_no_ring_cannot_be_attached(loop: Any) -> None:
    async def main() -> None:
        with pytest.raises(TypeError):
            ops.attach(object())
        with pytest.raises(ValueError, match="not set up"):
            ops.attach(liburing.Ring())
        ring = liburing.Ring()
        liburing.io_uring_queue_init(8, ring)
        mine = ops.attach(ring)
        with pytest.raises(OSError):
            ops.attach(ring)
        mine.close()
        liburing.io_uring_queue_exit(ring)

    run(loop, main())


def test_a_descriptor_in_the_rings_own_table_is_not_taken_for_a_number(
    loop: Any, ring: Any, tmp_path: Path
) -> None:
    """Opened for nobody, it must not be taken for the number of one of ours."""
    liburing.io_uring_register_files_sparse(ring, 2)
    how = liburing.OpenHow()
    how.flags, how.mode = os.O_CREAT | os.O_RDWR, 0o600

    async def main() -> None:
        mine = ops.attach(ring)
        before = os.fstat(0)
        task = asyncio.ensure_future(
            mine.submit(liburing.io_uring_prep_openat2_direct, str(tmp_path / "f"), how)
        )
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        async with asyncio.timeout(10):
            while "0 in the kernel" not in repr(mine):
                await asyncio.sleep(0)
        assert os.path.samestat(os.fstat(0), before)
        mine.close()

    run(loop, main())


def test_connections_that_were_not_taken_are_closed(loop: Any) -> None:
    async def main() -> None:
        with socket.create_server(("127.0.0.1", 0)) as server:
            accepting = ops.multishot(liburing.io_uring_prep_multishot_accept, server.fileno())
            clients = [socket.create_connection(server.getsockname()) for _ in range(3)]
            os.close((await anext(accepting)).result)
            await accepting.aclose()
            for client in clients:
                client.settimeout(10)
                with contextlib.suppress(ConnectionResetError):
                    assert client.recv(1) == b""
                client.close()

            async def forever() -> None:
                async for completion in ops.multishot(
                    liburing.io_uring_prep_multishot_accept, server.fileno()
                ):
                    os.close(completion.result)

            task = asyncio.ensure_future(forever())
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            with socket.create_connection(server.getsockname()) as client:
                client.settimeout(10)
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task

    run(loop, main())


def test_a_closed_loop_is_not_kept(new_loop: Any) -> None:
    loop = new_loop()
    run(loop, ops.submit(liburing.io_uring_prep_nop))
    loop.close()
    assert loop._ops_ring is None
    assert loop._at_close == []


def test_closing_is_finished_though_it_is_interrupted(new_loop: Any, monkeypatch: Any) -> None:
    """No memory that the kernel may write to is freed before."""
    loop = new_loop()
    source, sink = os.pipe()
    buffer = bytearray(10)

    async def main() -> Any:
        mine = ops.attach()
        asyncio.ensure_future(mine.submit(liburing.io_uring_prep_read, source, buffer))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        return mine

    mine = run(loop, main())
    wait = liburing.io_uring_wait_cqe

    def interrupted(ring: Any, cqe: Any) -> None:
        monkeypatch.setattr(liburing, "io_uring_wait_cqe", wait)
        raise KeyboardInterrupt

    monkeypatch.setattr(liburing, "io_uring_wait_cqe", interrupted)
    with pytest.raises(KeyboardInterrupt):
        mine.close()
    buffer.append(0)  # nobody holds it
    for task in asyncio.all_tasks(loop):
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            run(loop, task)
    loop.close()
    os.close(source)
    os.close(sink)


def test_a_loop_that_closes_drains_the_ring(new_loop: Any) -> None:
    loop = new_loop()
    source, sink = os.pipe()

    async def main() -> None:
        asyncio.ensure_future(ops.submit(liburing.io_uring_prep_read, source, bytearray(10)))
        await asyncio.sleep(0.01)

    run(loop, main())
    for task in asyncio.all_tasks(loop):
        task.cancel()
    run(loop, asyncio.sleep(0))
    loop.close()
    os.write(sink, b"x")
    assert os.read(source, 1) == b"x"
    os.close(source)
    os.close(sink)


def test_other_loops_are_refused() -> None:
    with pytest.raises(RuntimeError, match="uringloop's event loop only"):
        asyncio.run(ops.submit(liburing.io_uring_prep_nop))
