"""What has to wait: cancelling it loses nothing, doubles nothing and leaves the file usable; streams and
devices."""

from __future__ import annotations

import asyncio
import errno
import fcntl
import gc
import io
import os
import pty
import sys
import threading
import tty
from pathlib import Path
from typing import Any

import pytest

import uringloop


def uncached(path: Path) -> None:
    """Drop what the page cache holds of it, so that reading has to wait."""
    fd = os.open(path, os.O_RDWR)
    os.fsync(fd)
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(fd)


@pytest.fixture
def big(tmp_path: Path) -> tuple[Path, bytes]:
    path = tmp_path / "big"
    content = b"".join(b"%07d\n" % i for i in range(400_000))
    path.write_bytes(content)
    uncached(path)
    return path, content


def test_uncached_data_is_read_correctly(loop: Any, big: tuple[Path, bytes]) -> None:
    path, content = big

    async def main() -> None:
        async with uringloop.open_file(path, "rb") as file:
            assert await file.read(10) == content[:10]
            assert await file.readline() == content[10:16]
            await file.seek(1_500_000)
            assert await file.readline() == content[1_500_000:1_500_008]
            assert await file.pread(3000, 2_000_000) == content[2_000_000:2_003_000]
            await file.seek(0)
            assert await file.read() == content
            assert await file.read() == b""

    loop.run_until_complete(main())


def test_many_tasks_read_one_file_by_offset(loop: Any, big: tuple[Path, bytes]) -> None:
    path, content = big

    async def main() -> None:
        async with uringloop.open_file(path, "rb") as file:
            offsets = range(0, len(content), 100_003)
            parts = await asyncio.gather(*(file.pread(5000, offset) for offset in offsets))
            assert parts == [content[offset : offset + 5000] for offset in offsets]
            assert await file.tell() == 0

    loop.run_until_complete(main())


def test_many_tasks_read_one_file_in_turn(loop: Any, big: tuple[Path, bytes]) -> None:
    path, content = big
    got: list[bytes] = []

    async def main() -> None:
        async with uringloop.open_file(path, "rb") as file:

            async def reader() -> None:
                while data := await file.read(30_000):
                    got.append(data)

            await asyncio.gather(*(reader() for _ in range(16)))

    loop.run_until_complete(main())
    assert b"".join(sorted(got, key=content.index)) == content


def test_a_cancelled_read_does_not_move_the_position(loop: Any, big: tuple[Path, bytes]) -> None:
    path, content = big

    async def main() -> None:
        async with uringloop.open_file(path, "rb") as file:
            for after in range(30):
                place = await file.tell()
                assert place % 8 == 0
                task = asyncio.ensure_future(file.readline() if after % 2 else file.read(80_000))
                for _ in range(after % 5):
                    await asyncio.sleep(0)
                task.cancel()
                try:
                    place += len(await task)
                except asyncio.CancelledError:
                    pass
                assert await file.tell() == place
                assert await file.read(8) == content[place : place + 8]
                await file.seek(place + 8 * 9001)
                uncached(path)

    loop.run_until_complete(main())


def test_cancelled_preads_keep_their_memory_until_they_end(loop: Any, big: tuple[Path, bytes]) -> None:
    path, content = big

    async def main() -> None:
        file = await uringloop.open_file(path, "rb")
        tasks = [asyncio.ensure_future(file.pread(60_000, i * 90_000)) for i in range(30)]
        await asyncio.sleep(0)
        for task in tasks[::2]:
            task.cancel()
        parts = await asyncio.gather(*tasks, return_exceptions=True)
        assert {type(part) for part in parts[::2]} <= {asyncio.CancelledError, bytes}
        assert parts[1::2] == [content[i * 90_000 :][:60_000] for i in range(1, 30, 2)]
        uncached(path)
        task = asyncio.ensure_future(file.pread(60_000, 0))
        await asyncio.sleep(0)
        task.cancel()
        await file.close()  # waits for what is in the kernel
        assert file.closed

    loop.run_until_complete(main())


def test_cancelled_writes_are_neither_lost_nor_doubled(loop: Any, tmp_path: Path) -> None:
    path = tmp_path / "log"
    line = b"x" * 999 + b"\n"

    async def main() -> int:
        done = 0
        async with uringloop.open_file(path, "ab", buffering=4000) as file:
            for i in range(300):
                task = asyncio.ensure_future(file.write(line))
                for _ in range(i % 4):
                    await asyncio.sleep(0)
                task.cancel()
                try:
                    await task
                    done += 1
                except asyncio.CancelledError:
                    pass
            await file.flush()
            assert await file.tell() == path.stat().st_size
        return done

    done = loop.run_until_complete(main())
    lines = path.read_bytes().splitlines(keepends=True)
    assert set(lines) == {line}
    assert done <= len(lines) <= 300


def test_a_cancelled_close_still_closes(loop: Any, tmp_path: Path) -> None:
    path = tmp_path / "out"

    async def main() -> None:
        file = await uringloop.open_file(path, "wb")
        await file.write(b"x" * 100_000)
        task = asyncio.ensure_future(file.close())
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await file.close()
        assert file.closed

    loop.run_until_complete(main())
    assert path.stat().st_size == 100_000


def test_a_cancelled_open_leaves_no_descriptor(loop: Any, tmp_path: Path) -> None:
    async def main() -> None:
        for turns in range(6):
            task = asyncio.ensure_future(opened(tmp_path / f"new{turns}"))
            for _ in range(turns):
                await asyncio.sleep(0)
            task.cancel()
            try:
                await (await task).close()
            except asyncio.CancelledError:
                pass

    async def opened(path: Path) -> Any:
        return await uringloop.open_file(path, "wb")

    loop.run_until_complete(main())


def test_closing_the_loop_waits_for_reads_in_flight(new_loop: Any, big: tuple[Path, bytes]) -> None:
    loop = new_loop()
    files = []

    async def main() -> None:
        files.append(await uringloop.open_file(big[0], "rb"))
        for i in range(10):
            asyncio.ensure_future(files[0].pread(50_000, i * 100_000))
        await asyncio.sleep(0)

    loop.run_until_complete(main())
    for task in asyncio.all_tasks(loop):
        task.cancel()
    loop.run_until_complete(asyncio.sleep(0))
    loop.close()
    gc.collect()
    with pytest.warns(ResourceWarning, match="unclosed file"):
        files.clear()


# Streams and devices


def test_a_waiting_pipe_read_blocks_no_other_task(loop: Any) -> None:
    async def main() -> None:
        source, sink = os.pipe()
        async with uringloop.open_file(source, "rb") as reader, uringloop.open_file(sink, "wb") as writer:
            line = asyncio.ensure_future(reader.readline())
            for _ in range(5):
                await asyncio.sleep(0)
            assert not line.done()
            await writer.write(b"one\ntwo\nthr")
            await writer.flush()
            assert await line == b"one\n"
            assert await reader.readline() == b"two\n"
            assert await reader.read(2) == b"th"
            with pytest.raises(io.UnsupportedOperation):
                await reader.seek(0)
            with pytest.raises(OSError) as raised:
                await reader.tell()
            assert raised.value.errno == errno.ESPIPE
            await writer.close()
            assert await reader.read() == b"r"

    loop.run_until_complete(main())


def test_cancelled_pipe_reads_lose_no_byte(loop: Any) -> None:
    async def main() -> None:
        source, sink = os.pipe()
        got = b""
        async with uringloop.open_file(source, "rb", buffering=16) as reader:
            for i in range(100):
                task = asyncio.ensure_future(reader.readline())
                os.write(sink, b"%03d" % i)
                for _ in range(i % 4):
                    await asyncio.sleep(0)
                task.cancel()
                os.write(sink, b"\n")
                try:
                    got += await task
                except asyncio.CancelledError:
                    pass
            os.close(sink)
            got += await reader.read()
        assert got == b"".join(b"%03d\n" % i for i in range(100))

    loop.run_until_complete(main())


def test_a_full_pipe_blocks_only_its_writer(loop: Any) -> None:
    async def main() -> None:
        source, sink = os.pipe()
        data = os.urandom(300_000)
        async with (
            uringloop.open_file(source, "rb", 0) as reader,
            uringloop.open_file(sink, "wb", 0) as writer,
        ):
            writing = asyncio.ensure_future(writer.write(data))
            got = b""
            while len(got) < len(data):
                got += await reader.read(10_000)
            assert got == data
            assert await writing == len(data)

    loop.run_until_complete(main())


def test_a_read_of_a_nonblocking_pipe_waits_for_data(loop: Any) -> None:
    async def main() -> None:
        source, sink = os.pipe2(os.O_NONBLOCK)
        async with uringloop.open_file(source, "rb", 0) as reader:
            task = asyncio.ensure_future(reader.read(10))
            await asyncio.sleep(0)
            os.write(sink, b"x")
            assert await task == b"x"
            os.close(sink)
            assert await reader.read(10) == b""

    loop.run_until_complete(main())


def test_a_fifo_opens_when_its_other_end_is_opened(loop: Any, tmp_path: Path) -> None:
    path = tmp_path / "fifo"
    os.mkfifo(path)

    async def main() -> None:
        opening = asyncio.ensure_future(opened())
        for _ in range(10):
            await asyncio.sleep(0)
        assert not opening.done()
        async with uringloop.open_file(path, "w") as writer:
            async with await opening as reader:
                await writer.write("hello")
                await writer.close()
                assert await reader.read() == "hello"

    async def opened() -> Any:
        return await uringloop.open_file(path)

    loop.run_until_complete(main())


def test_a_cancelled_read_of_a_terminal_loses_no_input(loop: Any) -> None:
    async def main() -> None:
        master, slave = pty.openpty()
        tty.setraw(slave)
        async with (
            uringloop.open_file(slave, "rb", 0) as terminal,
            uringloop.open_file(master, "wb", 0) as keys,
        ):
            assert terminal.isatty()
            for _ in range(3):
                reading = asyncio.ensure_future(terminal.read(100))
                await asyncio.sleep(0.01)
                reading.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await reading
            reading = asyncio.ensure_future(terminal.read(100))
            await keys.write(b"pressed")
            assert await reading == b"pressed"

    loop.run_until_complete(main())


@pytest.mark.parametrize("path", ["/proc/filesystems", "/proc/mounts", "/proc/version", "/sys/kernel/notes"])
def test_files_with_size_zero_are_read_to_their_end(loop: Any, path: str) -> None:
    async def main() -> None:
        async with uringloop.open_file(path, "rb") as file, uringloop.open_file(path, "rb") as other:
            whole = await file.read()
            lines = [line async for line in other]
            assert whole
            assert len(whole) == sum(map(len, lines))
            await file.seek(0)
            assert await file.read(4) == whole[:4]

    loop.run_until_complete(main())


@pytest.mark.engines("uring", "epoll")  # devices epoll cannot watch have no second attempt to simulate
def test_devices_can_be_read_and_written(loop: Any) -> None:
    async def main() -> None:
        async with uringloop.open_file("/dev/urandom", "rb") as random:
            assert len(await random.read(100_000)) == 100_000
            assert await random.readline()
        async with uringloop.open_file("/dev/zero", "rb") as zero:
            assert await zero.read(5000) == bytes(5000)
        async with uringloop.open_file("/dev/null", "r+b", 0) as null:
            assert await null.write(b"x") == 1
            assert await null.read() == b""
        async with uringloop.open_file("/dev/full", "wb", 0) as full:
            with pytest.raises(OSError) as raised:
                await full.write(b"x")
            assert raised.value.errno == errno.ENOSPC

    loop.run_until_complete(main())


@pytest.mark.engines("uring", "epoll")  # a device epoll cannot watch has no second attempt to simulate
def test_a_flush_without_space_raises_enospc_and_close_still_closes(loop: Any) -> None:
    async def main() -> None:
        file = await uringloop.open_file("/dev/full", "wb")
        await file.write(b"x" * 100)
        with pytest.raises(OSError) as raised:
            await file.flush()
        assert raised.value.errno == errno.ENOSPC
        with pytest.raises(OSError):
            await file.close()
        assert file.closed

    loop.run_until_complete(main())


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting a small filesystem takes root")
def test_a_write_that_runs_out_of_space_reports_the_bytes_written(loop: Any, tmp_path: Path) -> None:
    import subprocess

    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "none", str(tmp_path)]).returncode:
        pytest.skip("may not mount here")
    try:

        async def main() -> None:
            file = await uringloop.open_file(tmp_path / "small", "wb", buffering=1000)
            with pytest.raises(OSError) as raised:
                await file.write(b"x" * 100_000)
            assert raised.value.errno == errno.ENOSPC
            assert raised.value.characters_written == 65536  # type: ignore[attr-defined]
            assert await file.tell() == 65536
            await file.close()

        loop.run_until_complete(main())
    finally:
        subprocess.run(["umount", str(tmp_path)], check=True)


def test_direct_files_read_and_write_at_any_offset(loop: Any, big: tuple[Path, bytes]) -> None:
    path, content = big

    async def main() -> None:
        async with uringloop.open_file(path, "rb", direct=True) as file:
            assert fcntl.fcntl(file.fileno(), fcntl.F_GETFL) & os.O_DIRECT
            assert await file.pread(5000, 12_345) == content[12_345:17_345]
            assert await file.pread(5000, len(content) - 10) == content[-10:]
            assert await file.read(10) == content[:10]
            assert await file.readline() == content[10:16]
            await file.seek(len(content) - 5)
            assert await file.read() == content[-5:]
        async with uringloop.open_file(path, "r+b", 0, direct=True) as file:
            assert await file.pwrite(b"y" * 8192, 4096) == 8192

    loop.run_until_complete(main())
    assert path.read_bytes() == content[:4096] + b"y" * 8192 + content[12288:]


def test_a_given_descriptor_is_read_from_its_current_position(loop: Any, tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_bytes(b"0123456789")
    fd = os.open(path, os.O_RDWR)

    async def main() -> None:
        os.lseek(fd, 3, os.SEEK_SET)
        async with uringloop.open_file(fd, "rb", closefd=False) as file:
            assert await file.read(2) == b"34"
        assert os.lseek(fd, 0, os.SEEK_CUR) == 5
        async with uringloop.open_file(fd, "r+b", closefd=False) as file:
            await file.write(b"xy")
        assert os.read(fd, 10) == b"789"

    try:
        loop.run_until_complete(main())
    finally:
        os.close(fd)
    assert path.read_bytes() == b"01234xy789"


def test_other_threads_run_while_a_file_is_read(loop: Any, big: tuple[Path, bytes]) -> None:
    path, content = big
    ticks = 0
    stop = threading.Event()

    def tick() -> None:
        nonlocal ticks
        while not stop.is_set():
            ticks += 1

    async def main() -> None:
        async with uringloop.open_file(path, "rb") as file:
            for _ in range(20):
                await file.seek(0)
                assert len(await file.read()) == len(content)

    sys_interval = sys.getswitchinterval()
    thread = threading.Thread(target=tick)
    thread.start()
    try:
        sys.setswitchinterval(0.0005)
        loop.run_until_complete(main())
    finally:
        sys.setswitchinterval(sys_interval)
        stop.set()
        thread.join()
    assert ticks > 100
