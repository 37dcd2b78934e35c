"""Subprocesses: every combination of pipes, every argument of Popen, and no status lost whoever is faster."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import itertools
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from uringloop.net.subprocesses import SubprocessTransport

PIPE, DEVNULL = asyncio.subprocess.PIPE, asyncio.subprocess.DEVNULL


@pytest.fixture
def run(loop: asyncio.AbstractEventLoop, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    def call(main: Any) -> Any:
        if isinstance(loop, asyncio.SelectorEventLoop) and sys.version_info < (3, 12):
            watcher = asyncio.PidfdChildWatcher()
            watcher.attach_loop(loop)
            monkeypatch.setattr(asyncio.events, "get_child_watcher", lambda: watcher)
        return loop.run_until_complete(asyncio.wait_for(main, 30))

    return call


def no_child_is_left() -> bool:
    try:
        return os.waitpid(-1, os.WNOHANG) is None
    except ChildProcessError:
        return True


@pytest.mark.contract
@pytest.mark.parametrize(("stdin", "stdout", "stderr"), [*itertools.product([None, PIPE, DEVNULL], repeat=3)])
def test_communicate_works_with_any_combination_of_pipes(
    run: Any, stdin: Any, stdout: Any, stderr: Any
) -> None:
    async def main() -> None:
        process = await asyncio.create_subprocess_shell(
            "test -p /dev/stdin && cat; echo problem >&2; exit 3"
            if stdin == PIPE
            else "echo problem >&2; exit 3",
            stdin=stdin,
            stdout=stdout,
            stderr=stderr if stderr is not None or stdout is None else asyncio.subprocess.STDOUT,
        )
        out, err = await process.communicate(b"input\n" if stdin == PIPE else None)
        assert process.returncode == 3
        together = stderr is None and stdout == PIPE
        expected = (b"input\n" if stdin == PIPE else b"") + (b"problem\n" if together else b"")
        assert out == (expected if stdout == PIPE else None)
        assert err == (b"problem\n" if stderr == PIPE else None)

    run(main())
    assert no_child_is_left()


@pytest.mark.contract
def test_communicate_passes_large_input_and_output_concurrently(run: Any) -> None:
    async def main() -> None:
        data = os.urandom(1 << 20)
        process = await asyncio.create_subprocess_exec("cat", stdin=PIPE, stdout=PIPE)
        assert await process.communicate(data) == (data, None)
        assert process.returncode == 0

    run(main())


@pytest.mark.contract
def test_a_process_killed_by_a_signal_has_a_negative_status(run: Any) -> None:
    async def main() -> None:
        for end, expected in (("terminate", -signal.SIGTERM), ("kill", -signal.SIGKILL)):
            process = await asyncio.create_subprocess_exec("sleep", "100")
            getattr(process, end)()
            assert await process.wait() == expected
        process = await asyncio.create_subprocess_exec("sleep", "100")
        process.send_signal(signal.SIGUSR1)
        assert await process.wait() == -signal.SIGUSR1
        assert await process.wait() == -signal.SIGUSR1

    run(main())
    assert no_child_is_left()


@pytest.mark.contract
def test_the_popen_object_is_in_the_extra_info(run: Any) -> None:
    async def main() -> None:
        process = await asyncio.create_subprocess_exec("true")
        popen = process._transport.get_extra_info("subprocess")  # type: ignore[attr-defined]
        assert isinstance(popen, subprocess.Popen) and popen.pid == process.pid
        await process.wait()
        assert popen.returncode == 0

    run(main())


@pytest.mark.contract
@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"cwd": "/"}, "cwd=/"),
        ({"cwd": Path("/")}, "cwd=/"),
        ({"env": {"PATH": os.environ["PATH"], "MARK": "here"}}, "mark=here"),
        ({"umask": 0o27}, "umask=0o27"),
        ({"process_group": 0}, "leads=True"),
        ({"start_new_session": True}, "leads=True"),
        ({"preexec_fn": lambda: os.nice(3)}, f"nice={min(os.nice(0) + 3, 19)}"),
        ({"close_fds": False}, "cwd="),
        ({"restore_signals": False}, "cwd="),
        ({"pipesize": 4096}, "cwd="),
    ],
    ids=repr,
)
def test_the_arguments_of_popen_are_passed_on(run: Any, options: dict[str, Any], expected: str) -> None:
    program = (
        'import os; print(f\'cwd={os.getcwd()} mark={os.environ.get("MARK")} umask={oct(os.umask(0))} '
        "leads={os.getpgid(0) == os.getpid()} nice={os.nice(0)}')"
    )

    async def main() -> None:
        process = await asyncio.create_subprocess_exec(
            Path(sys.executable), "-Sc", program, stdout=PIPE, **options
        )
        out, _ = await process.communicate()
        assert expected in out.decode()

    run(main())


@pytest.mark.contract
def test_pass_fds_passes_descriptors_to_the_process(run: Any) -> None:
    async def main() -> None:
        reader, writer = os.pipe()
        try:
            process = await asyncio.create_subprocess_shell(
                f"echo through > /dev/fd/{writer}", pass_fds=[writer]
            )
            assert await process.wait() == 0
            assert os.read(reader, 100) == b"through\n"
        finally:
            os.close(reader)
            os.close(writer)

    run(main())


@pytest.mark.contract
def test_a_missing_program_raises_file_not_found_error(run: Any) -> None:
    async def main() -> None:
        with pytest.raises(FileNotFoundError):
            await asyncio.create_subprocess_exec("/no such program", stdin=PIPE, stdout=PIPE)

    run(main())


@pytest.mark.contract
def test_many_processes_that_end_together_all_report_their_status(run: Any) -> None:
    async def one(number: int) -> int:
        process = await asyncio.create_subprocess_shell(f"exit {number}", stdin=DEVNULL)
        return await process.wait()

    async def main() -> None:
        assert await asyncio.gather(*(one(i) for i in range(100))) == list(range(100))

    run(main())
    assert no_child_is_left()


def test_a_loop_in_another_thread_can_start_a_process(new_loop: Callable[..., Any]) -> None:
    outcomes: list[Any] = []

    def in_thread() -> None:
        async def main() -> None:
            process = await asyncio.create_subprocess_exec("cat", stdin=PIPE, stdout=PIPE)
            outcomes.append(await process.communicate(b"data"))
            outcomes.append(process.returncode)

        loop = new_loop()
        loop.run_until_complete(main())
        loop.close()

    thread = threading.Thread(target=in_thread)
    thread.start()
    thread.join(30)
    assert outcomes == [(b"data", None), 0]


async def short_process(number: int) -> None:
    """One that ends by itself, is killed, or is killed while it ends: its status is the right one."""
    status = number % 120
    match number % 6:
        case 0:
            process = await asyncio.create_subprocess_exec("true", stdin=DEVNULL)
            expected = {0}
        case 1:
            process = await asyncio.create_subprocess_shell(f"exit {status}", stdin=DEVNULL)
            expected = {status}
        case 2:
            command = f"echo {number}; exit {status}"
            process = await asyncio.create_subprocess_exec("sh", "-c", command, stdin=PIPE, stdout=PIPE)
            assert await process.communicate(b"nobody reads this") == (b"%d\n" % number, None)
            expected = {status}
        case 3:
            process = await asyncio.create_subprocess_shell("kill -USR1 $$", stderr=PIPE)
            expected = {-signal.SIGUSR1}
        case 4:
            process = await asyncio.create_subprocess_exec("sleep", "100", stdout=DEVNULL)
            process.terminate()
            expected = {-signal.SIGTERM}
        case _:
            process = await asyncio.create_subprocess_exec("false")
            for _ in range(number % 7):
                await asyncio.sleep(0)
            # who was faster is for the kernel to say; kill never raises here, and reaches nobody else
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            expected = {1, -signal.SIGKILL}
    assert await process.wait() in expected, (number, process.returncode, expected)


@pytest.mark.parametrize("count", [240, pytest.param(5000, marks=pytest.mark.stress)])
def test_short_processes_of_loops_in_two_threads_all_report_their_status(
    new_loop: Callable[..., Any], count: int
) -> None:
    told: list[int] = []

    def work(numbers: Iterator[int]) -> None:
        async def worker() -> None:
            for number in numbers:
                await short_process(number)
                told.append(number)

        async def main() -> None:
            await asyncio.gather(*[worker() for _ in range(20)])

        with contextlib.closing(new_loop()) as loop:
            loop.run_until_complete(main())

    with ThreadPoolExecutor(1) as pool:
        in_thread = pool.submit(work, iter(range(count // 2)))
        work(iter(range(count // 2, count)))
        in_thread.result()
    assert sorted(told) == list(range(count))
    assert no_child_is_left()


def test_a_status_read_by_popen_is_returned_by_wait_too(run: Any) -> None:
    """Whoever reaps first: stock asyncio reports 255."""

    async def main() -> None:
        process = await asyncio.create_subprocess_shell("exit 9")
        popen = process._transport.get_extra_info("subprocess")  # type: ignore[attr-defined]
        assert popen.wait() == 9
        assert await process.wait() == 9

    run(main())


@pytest.mark.contract
def test_a_process_reaped_by_other_code_reports_status_255(
    run: Any, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        process = await asyncio.create_subprocess_exec("sleep", "100")
        os.kill(process.pid, signal.SIGKILL)  # it ends while nobody but us can look
        os.waitpid(process.pid, 0)
        assert await process.wait() == 255

    run(main())
    assert "exit status already read" in caplog.text


@pytest.mark.contract
def test_cancelling_the_spawn_leaves_no_child(loop: asyncio.AbstractEventLoop, run: Any) -> None:
    async def main() -> None:
        spawning = loop.create_task(asyncio.create_subprocess_exec("sleep", "100", stdin=PIPE, stdout=PIPE))
        await asyncio.sleep(0)
        spawning.cancel()
        with pytest.raises(asyncio.CancelledError):
            await spawning

    run(main())
    assert no_child_is_left()


@pytest.mark.contract
def test_the_protocol_is_called_in_order_in_the_callers_context(
    loop: asyncio.AbstractEventLoop, run: Any
) -> None:
    variable: contextvars.ContextVar[str] = contextvars.ContextVar("variable")
    told: list[Any] = []

    class Recorder(asyncio.SubprocessProtocol):
        def connection_made(self, transport: Any) -> None:
            told.append("made")

        def pipe_data_received(self, fd: int, data: bytes) -> None:
            told.append((fd, data))

        def pipe_connection_lost(self, fd: int, error: Exception | None) -> None:
            told.append((fd, error))

        def process_exited(self) -> None:
            told.append(variable.get("unset"))

        def connection_lost(self, error: Exception | None) -> None:
            told.append("lost")
            ended.set_result(None)

    async def main() -> None:
        variable.set("spawner")
        transport, _ = await loop.subprocess_exec(Recorder, "echo", "out", stdin=None, stderr=None)
        variable.set("later")
        await ended
        assert told[0] == "made" and told[-1] == "lost"
        assert told.index((1, b"out\n")) < told.index((1, None))
        assert "spawner" in told
        assert transport.get_returncode() == 0
        transport.close()

    ended = loop.create_future()
    run(main())


def test_an_error_of_pidfd_open_raises_in_the_caller_and_leaves_no_child(
    run: Any, monkeypatch: pytest.MonkeyPatch, feature: Callable[[str], bool]
) -> None:
    if feature("waitid"):
        pytest.skip("the kernel waits without one")

    def refuse(pid: int, flags: int = 0) -> int:
        raise OSError(24, "Too many open files")

    async def main() -> None:
        with pytest.raises(OSError, match="Too many open files"):
            await asyncio.create_subprocess_exec("sleep", "100", stdin=PIPE)

    monkeypatch.setattr(os, "pidfd_open", refuse)
    run(main())
    assert no_child_is_left()


def test_an_interrupt_at_any_point_reports_the_end_once(loop: Any) -> None:
    """Between any two lines of what is done when a process has ended."""
    lines = 0
    steps = SubprocessTransport.exited, SubprocessTransport._process_exited, SubprocessTransport._try_finish
    watched = {step.__code__ for step in steps}

    def trace(frame: Any, event: str, argument: object) -> Any:
        nonlocal left
        if event == "line":
            left -= 1
            if left == 0:
                raise KeyboardInterrupt
        return trace

    class Told(asyncio.SubprocessProtocol):
        def __init__(self) -> None:
            self.calls: list[str] = []
            self.lost = loop.create_future()

        def process_exited(self) -> None:
            self.calls.append("exited")

        def connection_lost(self, error: Exception | None) -> None:
            self.calls.append("lost")
            self.lost.set_result(None)

    loop.set_exception_handler(lambda loop, context: unexpected.append(context))
    unexpected: list[dict[str, Any]] = []
    left = 0
    while left <= 0:
        lines += 1
        left = lines
        transport, protocol = loop.run_until_complete(
            loop.subprocess_exec(Told, "sleep", "60", stdin=None, stdout=None, stderr=None)
        )
        transport.kill()
        sys.settrace(lambda frame, event, argument: trace if frame.f_code in watched else None)
        try:
            loop.run_until_complete(protocol.lost)
        except KeyboardInterrupt:
            sys.settrace(None)
            loop.run_until_complete(asyncio.wait([protocol.lost], timeout=20))
        finally:
            sys.settrace(None)
        assert protocol.calls == ["exited", "lost"]
        assert transport.get_returncode() == -signal.SIGKILL
        transport.close()
    assert lines > 5 and unexpected == []
