"""subprocess_exec and subprocess_shell."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

from compat.behaviours import check
from compat.behaviours.helpers import new_loop, open_fds, raises_async, soon, until

PIPE = asyncio.subprocess.PIPE
RUN = "subprocess exec/shell, pipes, terminate, 20 at once, from a thread"
OPTIONS = "subprocess pass_fds, cwd, env, start_new_session, STDOUT"
RARE = "subprocess process_group, umask, preexec_fn"


async def _output(*command: str, **options: Any) -> tuple[int | None, bytes]:
    process = await asyncio.create_subprocess_exec(*command, stdout=PIPE, **options)
    out, _ = await soon(process.communicate())
    return process.returncode, out


@check(RUN)
async def exec_with_pipes() -> None:
    process = await asyncio.create_subprocess_exec("cat", stdin=PIPE, stdout=PIPE, stderr=PIPE)
    message = os.urandom(1_000_000)
    out, err = await soon(process.communicate(message))
    assert out == message and err == b"" and process.returncode == 0
    code, out = await _output(sys.executable, "-c", "import sys; print('x' * 10); sys.exit(7)")
    assert (code, out) == (7, b"x" * 10 + b"\n")


@check(RUN)
async def shell_with_pipes() -> None:
    process = await asyncio.create_subprocess_shell(
        "read line; echo got $line; echo err >&2; exit 3", stdin=PIPE, stdout=PIPE, stderr=PIPE
    )
    out, err = await soon(process.communicate(b"this\n"))
    assert (out, err, process.returncode) == (b"got this\n", b"err\n", 3)


@check(RUN)
async def terminate_kill_and_send_signal() -> None:
    for action, wanted in (
        ("terminate", -signal.SIGTERM),
        ("kill", -signal.SIGKILL),
        (signal.SIGHUP, -signal.SIGHUP),
    ):
        process = await asyncio.create_subprocess_exec("sleep", "30")
        if isinstance(action, str):
            getattr(process, action)()
        else:
            process.send_signal(action)
        assert await soon(process.wait()) == wanted
        assert process.returncode == wanted
        # after its end: nothing, or an error that says so
        with contextlib.suppress(ProcessLookupError):
            process.terminate()


@check(RUN)
async def twenty_at_once() -> None:
    async def one(number: int) -> tuple[int | None, bytes]:
        return await _output("sh", "-c", f"sleep 0.0{number % 10}; echo {number}; exit {number}")

    results = await soon(asyncio.gather(*(one(number) for number in range(20))))
    assert results == [(number, b"%d\n" % number) for number in range(20)]


@check(RUN)
def from_a_loop_in_a_thread() -> None:
    results: list[Any] = []

    def work() -> None:
        with asyncio.Runner(loop_factory=new_loop) as runner:
            results.append(runner.run(_output("echo", "thread")))

    # the main thread has its loop too, and may be the one that hears of children
    with asyncio.Runner(loop_factory=new_loop) as runner:
        thread = threading.Thread(target=work)
        thread.start()
        assert runner.run(_output("echo", "main")) == (0, b"main\n")
        thread.join()
    assert results == [(0, b"thread\n")]


@check(RUN)
async def process_protocol_sees_everything() -> None:
    loop: Any = asyncio.get_running_loop()
    calls: list[Any] = []
    done = loop.create_future()

    class Protocol(asyncio.SubprocessProtocol):
        def connection_made(self, transport: Any) -> None:
            calls.append("made")

        def pipe_data_received(self, fd: int, data: bytes) -> None:
            calls.append((fd, data))

        def pipe_connection_lost(self, fd: int, exc: Any) -> None:
            calls.append(("lost", fd))

        def process_exited(self) -> None:
            calls.append("exited")

        def connection_lost(self, exc: Any) -> None:
            calls.append("connection lost")
            done.set_result(None)

    transport, _ = await loop.subprocess_exec(
        Protocol, "sh", "-c", "read line; echo $line", stdin=PIPE, stdout=PIPE, stderr=PIPE
    )
    assert isinstance(transport, asyncio.SubprocessTransport)
    assert transport.get_returncode() is None and transport.get_pid() > 0
    popen = transport.get_extra_info("subprocess")
    assert isinstance(popen, subprocess.Popen) and popen.pid == transport.get_pid()
    stdin: Any = transport.get_pipe_transport(0)
    stdin.write(b"through\n")
    await soon(done)
    assert transport.get_returncode() == 0
    assert calls[0] == "made" and calls[-1] == "connection lost"
    assert (1, b"through\n") in calls and "exited" in calls
    assert {("lost", 1), ("lost", 2)} <= {call for call in calls if isinstance(call, tuple)}


@check(RUN)
async def missing_program_raises() -> None:
    before = open_fds()
    await raises_async(
        FileNotFoundError, asyncio.create_subprocess_exec("/no/such/program", stdin=PIPE, stdout=PIPE)
    )
    await until(lambda: open_fds() == before)


@check(RUN)
async def exit_before_wait_is_not_lost() -> None:
    process = await asyncio.create_subprocess_exec("true")
    await asyncio.sleep(0.2)
    assert await soon(process.wait()) == 0
    assert await soon(process.wait()) == 0
    await raises_async(ChildProcessError, asyncio.to_thread(os.waitpid, process.pid, os.WNOHANG))


@check(RUN)
async def output_after_exit_is_read_to_the_end() -> None:
    # a grandchild keeps the pipe: the end of the process is not the end of its output
    process = await asyncio.create_subprocess_shell("(sleep 0.3; echo late) & echo early", stdout=PIPE)
    assert await soon(process.wait()) == 0
    assert process.stdout is not None
    assert await soon(process.stdout.read()) == b"early\nlate\n"


@check(RUN)
async def close_kills_and_reaps() -> None:
    loop: Any = asyncio.get_running_loop()
    transport, _ = await loop.subprocess_exec(asyncio.SubprocessProtocol, "sleep", "30")
    pid = transport.get_pid()
    transport.close()
    await until(lambda: transport.get_returncode() is not None)
    assert transport.get_returncode() == -signal.SIGKILL
    await raises_async(ChildProcessError, asyncio.to_thread(os.waitpid, pid, os.WNOHANG))


@check(OPTIONS)
async def options_reach_the_child() -> None:
    with tempfile.TemporaryDirectory() as folder:
        _, out = await _output("pwd", "-P", cwd=folder)
        assert out.decode().strip() == str(Path(folder).resolve())
        _, out = await _output("pwd", "-P", cwd=Path(folder))
        assert out.decode().strip() == str(Path(folder).resolve())
    _, out = await _output("env", env={"ONLY": "this"})
    assert out == b"ONLY=this\n"
    _, out = await _output(
        sys.executable, "-c", "import os; print(os.getsid(0) == os.getpid())", start_new_session=True
    )
    assert out == b"True\n"
    _code, out = await _output("sh", "-c", "echo out; echo err >&2", stderr=asyncio.subprocess.STDOUT)
    assert out == b"out\nerr\n"
    process = await asyncio.create_subprocess_exec("sh", "-c", "echo gone", stdout=asyncio.subprocess.DEVNULL)
    assert await soon(process.wait()) == 0 and process.stdout is None


@check(OPTIONS)
async def descriptors_are_passed_or_closed() -> None:
    read, write = os.pipe()
    code, _ = await _output("sh", "-c", f"echo passed > /proc/self/fd/{write}", pass_fds=(write,))
    assert code == 0 and os.read(read, 100) == b"passed\n"
    code, _ = await _output(
        "sh", "-c", f"echo passed > /proc/self/fd/{write}", stderr=asyncio.subprocess.DEVNULL
    )
    assert code != 0
    os.set_inheritable(write, True)
    code, _out = await _output("sh", "-c", f"echo kept > /proc/self/fd/{write}", close_fds=False)
    assert code == 0 and os.read(read, 100) == b"kept\n"
    os.close(read)
    os.close(write)


@check(OPTIONS)
async def files_and_sockets_as_standard_streams() -> None:
    with tempfile.TemporaryFile() as file:
        process = await asyncio.create_subprocess_exec("echo", "to a file", stdout=file)
        assert await soon(process.wait()) == 0
        file.seek(0)
        assert file.read() == b"to a file\n"


@check(OPTIONS)
async def text_mode_is_refused() -> None:
    for options in ({"universal_newlines": True}, {"text": True}, {"encoding": "utf-8"}, {"bufsize": 1}):
        await raises_async(ValueError, asyncio.create_subprocess_exec("true", **options))
    await raises_async(
        ValueError,
        asyncio.get_running_loop().subprocess_shell(asyncio.SubprocessProtocol, ["not", "a", "string"]),
    )


@check(RARE)
async def process_group_and_umask() -> None:
    _, out = await _output(
        sys.executable, "-c", "import os; print(os.getpgid(0) == os.getpid())", process_group=0
    )
    assert out == b"True\n", out
    _, out = await _output("sh", "-c", "umask", umask=0o27)
    assert out.strip() == b"0027", out


@check(RARE, alone=True)
async def preexec_fn_runs_in_the_child() -> None:
    read, write = os.pipe()
    code, _ = await _output("true", preexec_fn=lambda: os.write(write, b"child") and None)
    assert code == 0 and os.read(read, 10) == b"child"
    os.close(read)
    os.close(write)


@check(RARE, alone=True)
async def spawning_does_not_run_fork_hooks() -> None:
    seen: list[str] = []
    os.register_at_fork(before=lambda: seen.append("before"), after_in_parent=lambda: seen.append("parent"))
    assert (await _output("echo", "quiet"))[1] == b"quiet\n"
    assert not seen


@check(RARE)
async def spawning_many_short_processes_loses_none() -> None:
    started = time.monotonic()
    codes = []
    for _ in range(10):
        processes = [
            await asyncio.create_subprocess_exec("sh", "-c", f"exit {number}") for number in range(15)
        ]
        codes += await soon(asyncio.gather(*(process.wait() for process in processes)))
        if time.monotonic() - started > 6:
            break
    assert codes == [number for _ in range(len(codes) // 15) for number in range(15)]
