"""`uringloop dump` on the programs of hung/: of each broken one it names the line marked "stuck here", and of its
healthy twin it says that nothing is stuck."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from uringloop.__main__ import main
from uringloop.errors import InspectionFailed
from uringloop.inspect import reach

Start = Callable[..., "subprocess.Popen[str]"]
Hung = Callable[..., "subprocess.Popen[str]"]

HUNG = Path(__file__).parent / "hung"
KINDS = {
    "asyncio_condition": "Condition",
    "condition": "Condition",
    "each_other": "deadlock",
    "event": "Event",
    "executor": "executor",
    "full_queue": "Queue.put",
    "gil": "gil",
    "line": "Queue.get",
    "lost_future": "future",
    "own_job": "deadlock",
    "sleeping": "blocked",
    "spin": "blocked",
    "thread_lock": "blocked",
    "three_locks": "deadlock",
    "two_asyncio_locks": "deadlock",
    "two_locks": "deadlock",
}
PATIENT = ("--wait", "60", "--timeout", "60")  # a healthy loop answers at once, however slow the machine is


@pytest.fixture
def hung(start: Start, engine: str) -> Hung:
    """Starts a program of hung/, and waits until it says that it is ready."""

    def begin(name: str, *arguments: str, inspect: str = "1") -> subprocess.Popen[str]:
        child = start("run", HUNG / f"{name}.py", *arguments, URINGLOOP_INSPECT=inspect)
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
        return child

    return begin


def dumped(start: Start, child: subprocess.Popen[str], *options: str) -> tuple[int, dict[str, Any]]:
    looking = start("dump", "--json", *options, child.pid)
    out, error = looking.communicate()
    assert looking.returncode in (0, 3), error
    return looking.returncode, json.loads(out)


def stuck(start: Start, child: subprocess.Popen[str], *options: str) -> list[dict[str, Any]]:
    """What is stuck, once something is: the program says that it is ready just before."""
    while True:
        code, found = dumped(start, child, *options)
        certain = [each for each in found["verdicts"] if each["certain"]]
        assert (code == 3) == bool(certain)
        if certain:
            return certain


def marked(name: str) -> list[int]:
    lines = (HUNG / f"{name}.py").read_text().splitlines()
    return [number for number, line in enumerate(lines, 1) if "# stuck here" in line]


def test_every_program_is_in_the_table() -> None:
    assert {path.stem for path in HUNG.glob("*.py")} == set(KINDS)


@pytest.mark.engines("uring", "epoll")
@pytest.mark.parametrize("name", KINDS)
def test_the_dump_names_the_line_of_the_culprit(start: Start, hung: Hung, name: str) -> None:
    if name == "lost_future" and not getattr(sys, "_is_gil_enabled", lambda: True)():
        pytest.skip("without the GIL a dump does not count references")
    child = hung(name)
    found = stuck(start, child, "--wait", "0.2", "--timeout", "1" if name == "gil" else "60")
    assert [(each["kind"], each["file"]) for each in found] == [(KINDS[name], str(HUNG / f"{name}.py"))], (
        found
    )
    assert found[0]["line"] in marked(name)
    assert f"{name}.py:{found[0]['line']}" in found[0]["text"]
    assert child.poll() is None


@pytest.mark.engines("uring", "epoll")
@pytest.mark.parametrize("name", KINDS)
def test_nothing_is_stuck_in_its_healthy_twin(start: Start, hung: Hung, name: str) -> None:
    child = hung(name, "healthy")
    code, found = dumped(start, child, *PATIENT)
    assert (code, [each for each in found["verdicts"] if each["certain"]]) == (0, [])
    assert found["how"] == "inspector"
    looking = start("dump", *PATIENT, child.pid)
    assert "Nothing is stuck." in looking.communicate()[0]
    assert child.poll() is None


@pytest.mark.engines("uring", "epoll")
def test_a_server_that_waits_for_connections_is_not_stuck(
    start: Start, serving: subprocess.Popen[str]
) -> None:
    code, found = dumped(start, serving, *PATIENT)
    assert (code, [each for each in found["verdicts"] if each["certain"]]) == (0, [])
    assert "talks" in {task["name"] for task in found["tasks"]}


HEALTHY = {
    "a child": "child = await asyncio.create_subprocess_exec('cat', stdin=-1, stdout=-3, stderr=-3); ready(); "
    "await child.wait()",
    "a signal": "loop.add_signal_handler(signal.SIGTERM, event.set); ready(); await event.wait()",
    "Python's handler": "signal.signal(signal.SIGTERM, lambda *_: event.set()); ready(); await event.wait()",
    "a reader": "loop.add_reader(ours, event.set); ready(); await event.wait()",
    "a socket": "ours.setblocking(False); ready(); await loop.sock_recv(ours, 1)",
    "a stream": "reader, writer = await asyncio.open_connection(sock=ours); ready(); await reader.read()",
    "datagrams": "await loop.create_datagram_endpoint(asyncio.DatagramProtocol, ('127.0.0.1', 0)); ready(); "
    "await event.wait()",
    "a thread": "threading.Thread(target=time.sleep, args=(3600,), daemon=True).start(); ready(); "
    "await event.wait()",
    "a timeout": "ready(); await asyncio.wait_for(event.wait(), 3600)",
    "a timeout of a deadlock": "await asyncio.wait_for(asyncio.gather(take(a, b), take(b, a)), 3600)",
    "a group": "group = asyncio.TaskGroup(); await group.__aenter__(); group.create_task(asyncio.sleep(3600)); "
    "ready(); await group.__aexit__(None, None, None)",
    "a file": "file = await uringloop.open_file(reading, 'rb', buffering=0); ready(); await file.read(1)",
}
TWIN = """
import asyncio, os, signal, socket, sys, threading, time, uringloop

def ready():
    print("ready", flush=True)

async def take(first, second):
    async with first:
        await asyncio.sleep(0)
        ready()
        async with second:
            pass

async def main():
    loop, event, a, b = asyncio.get_running_loop(), uringloop.Event(), uringloop.Lock(), uringloop.Lock()
    ours, theirs = socket.socketpair()
    reading, writing = os.pipe()
    BODY

asyncio.run(main())
"""


@pytest.mark.engines("uring", "epoll")
@pytest.mark.parametrize("waits_for", HEALTHY)
def test_what_something_can_wake_is_not_stuck(
    start: Start, tmp_path: Path, engine: str, waits_for: str
) -> None:
    script = tmp_path / "twin.py"
    script.write_text(TWIN.replace("BODY", HEALTHY[waits_for]))
    child = start("run", script, URINGLOOP_INSPECT="1")
    assert child.stdout is not None and child.stdout.readline() == "ready\n"
    code, found = dumped(start, child, *PATIENT)
    assert (code, [each for each in found["verdicts"] if each["certain"]]) == (0, []), found["verdicts"]
    assert child.poll() is None


@pytest.mark.engines("uring", "epoll")
def test_a_deadlock_is_told_with_its_tasks_locks_and_places(start: Start, hung: Hung) -> None:
    (found,) = stuck(start, hung("two_locks"), *PATIENT)
    for said in (
        "task 'one' holds Lock 'first' and waits for Lock 'second' in one()",
        "'other' holds Lock 'second'",
    ):
        assert said in found["text"]
    assert [place["line"] for place in found["places"]] == marked("two_locks")


@pytest.mark.engines("uring", "epoll")
def test_a_line_is_told_with_its_holder_and_what_that_waits_for(start: Start, hung: Hung) -> None:
    (found,) = stuck(start, hung("line"), *PATIENT)
    assert found["text"].startswith(
        "12 tasks wait for Lock 'pool', held by task 'refresh', which waits for an item of Queue 'jobs' in refresh(), "
    )


@pytest.mark.engines("uring", "epoll")
def test_a_task_is_told_with_the_given_name_of_its_lock_and_how_long_it_has_waited(
    start: Start, tmp_path: Path, engine: str
) -> None:
    script = tmp_path / "named.py"
    script.write_text(
        "import asyncio, uringloop\n"
        "a, b = uringloop.Lock(name='the pool'), asyncio.Lock()\n"
        "async def take(lock):\n"
        "    await lock.acquire()\n"
        "async def main():\n"
        "    await take(a), await take(b)\n"
        "    tasks = [asyncio.create_task(take(a), name='ours'), asyncio.create_task(take(b), name='theirs')]\n"
        "    await asyncio.sleep(0.3)\n"
        "    print('ready', flush=True)\n"
        "    await asyncio.sleep(3600)\n"
        "asyncio.run(main())\n"
    )
    child = start("run", script, URINGLOOP_INSPECT="1")
    assert child.stdout is not None and child.stdout.readline() == "ready\n"
    _, found = dumped(start, child, *PATIENT)
    seconds = {task["name"]: task["waits_for"]["seconds"] for task in found["tasks"]}
    assert 0.2 < seconds["ours"] < 3600 and seconds["theirs"] is None
    out, _ = start("dump", *PATIENT, child.pid).communicate()
    assert "'ours' (loop 1): waits for Lock 'the pool' for " in out
    assert "'theirs' (loop 1): waits for Lock 'lock' in take()" in out


@pytest.mark.engines("uring", "epoll")
@pytest.mark.parametrize("name", ["condition", "asyncio_condition"])
def test_a_task_that_waits_for_a_notification_does_not_hold_the_lock(
    start: Start, hung: Hung, name: str
) -> None:
    _, found = dumped(start, hung(name, "healthy"), *PATIENT)
    assert {task["name"] for task in found["tasks"] if task["holds"]} == {"notifier"}


@pytest.mark.engines("uring", "epoll")
def test_the_text_has_loops_threads_and_tasks_and_ends_with_the_verdict(start: Start, hung: Hung) -> None:
    child = hung("executor")
    stuck(start, child, *PATIENT)
    looking = start("dump", *PATIENT, child.pid)
    out, error = looking.communicate()
    assert (looking.returncode, error) == (3, "")
    loops, tasks, verdict = (
        out.partition("loop 1: ")[2],
        out.partition("tasks;")[2],
        out.partition("Stuck:\n")[2],
    )
    assert "thread 'asyncio_0', waiting" in loops and "in work" in loops
    assert "'Task-1' (loop 1): waits for a call in an executor's thread in main()" in tasks
    assert "which is at lock.acquire in work()" in verdict


@pytest.mark.engines("uring", "epoll")
def test_no_value_of_a_variable_is_shown(start: Start, tmp_path: Path, engine: str) -> None:
    script = tmp_path / "secret.py"
    script.write_text(
        "import asyncio, time\n"
        "async def main(password):\n"
        "    token = password * 2\n"
        "    print('ready', flush=True)\n"
        "    time.sleep(len(token) * 1000)\n"
        "asyncio.run(main('swordfish'.upper()))\n"
    )
    child = start("run", script, URINGLOOP_INSPECT="1")
    assert child.stdout is not None and child.stdout.readline() == "ready\n"
    for options in ([], ["--json"]):
        looking = start("dump", "--wait", "0.2", *options, child.pid)
        out, _ = looking.communicate()
        assert "secret.py" in out and "SWORDFISH" not in out


def refused(capsys: pytest.CaptureFixture[str], *given: object) -> tuple[int, str]:
    code = main(["dump", *map(str, given)])
    out, error = capsys.readouterr()
    assert out == "" and len(error.splitlines()) == 1, error
    return code, error


def test_a_refusal_names_the_cause_and_the_remedy(
    runtime: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as gone:
        pass
    code, error = refused(capsys, gone.pid)
    assert code == 1 and "there is no process" in error and "container" in error
    code, error = refused(capsys, "--wait", "0", os.getpid())
    assert code == 2 and "--wait" in error
    with monkeypatch.context() as patch:
        patch.setattr(os, "geteuid", lambda: 12345)
        code, error = refused(capsys, os.getpid())
    assert code == 1 and "only its own user" in error and "sudo -u" in error


@pytest.fixture
def sleeping() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(["sleep", "3600"]) as child:
        yield child
        child.kill()


def test_a_process_that_is_stopped_or_no_python_is_refused(
    runtime: Path, sleeping: subprocess.Popen[bytes], capsys: pytest.CaptureFixture[str]
) -> None:
    while "sleep" not in reach._program(sleeping.pid):  # the child may not have executed it yet
        pass
    code, error = refused(capsys, sleeping.pid)
    assert code == 1 and "is no Python program" in error
    sleeping.send_signal(signal.SIGSTOP)
    os.waitid(os.P_PID, sleeping.pid, os.WSTOPPED | os.WNOWAIT)
    code, error = refused(capsys, sleeping.pid)
    assert code == 1 and f"kill -CONT {sleeping.pid}" in error


def test_another_pid_namespace_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    status = reach._status(os.getpid())
    monkeypatch.setattr(reach, "_status", lambda pid: {**status, "NSpid": f"{pid}\t7"})
    with pytest.raises(InspectionFailed, match=r"another PID namespace .* uringloop dump 7 "):
        reach.reach(os.getpid(), 1)


@pytest.mark.engines("uring", "epoll")
def test_a_process_without_an_inspector(start: Start, hung: Hung) -> None:
    """From 3.14 on the dump opens one while the main thread runs Python code; before, it says how to start it."""
    child = hung("spin", inspect="0")
    looking = start("dump", "--wait", "0.2", "--timeout", "60", child.pid)
    out, error = looking.communicate()
    if not hasattr(sys, "remote_exec"):
        assert looking.returncode == 1
        assert "URINGLOOP_INSPECT=1" in error and "py-spy dump" in error
    elif looking.returncode == 1:  # the kernel forbids it
        assert "CAP_SYS_PTRACE" in error
    else:
        assert looking.returncode == 3 and "spin.py" in out.partition("Stuck:")[2]
    assert child.poll() is None


@pytest.mark.skipif(not hasattr(sys, "remote_exec"), reason="no code can be run in another process")
@pytest.mark.engines("uring", "epoll")
def test_a_process_that_runs_no_python_code_opens_no_inspector(start: Start, hung: Hung) -> None:
    looking = start("dump", "--timeout", "0.5", hung("sleeping", inspect="0").pid)
    _, error = looking.communicate()
    assert looking.returncode == 1 and ("runs no Python code" in error or "CAP_SYS_PTRACE" in error)


@pytest.mark.engines("uring", "epoll")
def test_without_a_stack_handler_the_dump_ends_with_a_message(
    start: Start, tmp_path: Path, engine: str
) -> None:
    script = tmp_path / "bare.py"
    script.write_text(
        "import asyncio, ctypes\n"
        "from uringloop.inspect import serve\n"
        "async def main():\n"
        "    serve()._stacks.close()\n"
        "    print('ready', flush=True)\n"
        "    ctypes.PyDLL(None).sleep(3600)\n"
        "asyncio.run(main())\n"
    )
    child = start("run", script, URINGLOOP_INSPECT="1")
    assert child.stdout is not None and child.stdout.readline() == "ready\n"
    looking = start("dump", "--wait", "0.1", "--timeout", "0.5", child.pid)
    out, error = looking.communicate()
    assert (looking.returncode, out) == (1, "")
    assert "does not answer" in error and "py-spy dump --native" in error
    assert child.poll() is None
