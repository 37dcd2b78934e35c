"""What is asked of the kernel, switched off, and refused."""

from __future__ import annotations

import errno
from collections.abc import Callable
from typing import Any

import pytest

from uringloop._core.kernel.probe import SWITCHES, locked_memory, offered, refusal, switched_off

Program = Callable[..., Any]

SMOKE = """
import asyncio, os, signal, socket, threading
import uringloop
from uringloop._core.kernel.probe import offered

async def main():
    loop = asyncio.get_running_loop()
    begun = loop.time()
    await asyncio.sleep(0.002)
    assert loop.time() - begun >= 0.002
    assert await loop.run_in_executor(None, int) == 0

    pairs = [socket.socketpair() for _ in range(20)]
    for left, right in pairs:
        left.setblocking(False)
        right.setblocking(False)
    readable = asyncio.Queue()
    for left, right in pairs:
        loop.add_reader(left, lambda left=left: (left.recv(1), readable.put_nowait(left)))
        loop.add_writer(right, lambda right=right: (right.send(b"x"), loop.remove_writer(right)))
    for _ in pairs:
        await readable.get()
    for left, right in pairs:
        assert loop.remove_reader(left)
        left.close()
        right.close()

    told = asyncio.Event()
    loop.add_signal_handler(signal.SIGUSR1, told.set)
    os.kill(os.getpid(), signal.SIGUSR1)
    await told.wait()

    server = await asyncio.start_server(echo, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    await asyncio.gather(*(ask(port, b"%d" % i * 5000) for i in range(10)))
    server.close()
    await server.wait_closed()

async def echo(reader, writer):
    while data := await reader.read(65536):
        writer.write(data)
        await writer.drain()
    writer.close()

async def ask(port, message):
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(message)
    writer.write_eof()
    assert await reader.read() == message
    writer.close()
    await writer.wait_closed()

loop = uringloop.new_event_loop()
for _ in range(2):
    thread = threading.Thread(target=loop.run_until_complete, args=(asyncio.sleep(0.001),))
    thread.start()
    thread.join()
    loop.run_until_complete(main())
counts = loop._counts()
loop.run_until_complete(loop.shutdown_default_executor())
loop.close()
print(offered())
"""


@pytest.mark.engines("uring")
@pytest.mark.parametrize("tiny", ["0", "1"])
@pytest.mark.parametrize("switch", SWITCHES)
def test_the_core_works_without(engine: str, program: Program, switch: str, tiny: str) -> None:
    used = eval(program(SMOKE, URINGLOOP_DISABLE=switch, URINGLOOP_RESTRICT="", URINGLOOP_TINY=tiny).stdout)
    assert used[switch] is False


@pytest.mark.engines("uring")
def test_the_core_works_without_any_feature(engine: str, program: Program) -> None:
    used = eval(program(SMOKE, URINGLOOP_DISABLE=", ".join(SWITCHES), URINGLOOP_RESTRICT="").stdout)
    assert not any(used.values())


@pytest.mark.engines("uring")
def test_the_core_works_tiny(engine: str, program: Program) -> None:
    program(SMOKE, URINGLOOP_TINY="1")


def test_the_core_works_on_this_engine(engine: str, program: Program) -> None:
    program(SMOKE, URINGLOOP_TINY="0")


def test_every_switch_names_something_that_is_offered_or_not() -> None:
    assert set(offered()) == set(SWITCHES)


def test_a_switch_that_does_not_exist_is_an_error(program: Program) -> None:
    ended = program(
        "import uringloop; uringloop.new_event_loop()", URINGLOOP_DISABLE="warp_drive", check=False
    )
    assert ended.returncode
    assert "URINGLOOP_DISABLE names no such feature: warp_drive" in ended.stderr


def test_switches_are_a_list_with_commas(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("URINGLOOP_DISABLE", " abs_timer, no_iowait,,")
    assert switched_off() == {"abs_timer", "no_iowait"}


@pytest.mark.skipif(refusal() is not None, reason="this machine refuses io_uring itself")
@pytest.mark.parametrize("name", ["EPERM", "ENOSYS", "EACCES"])
def test_without_io_uring_loops_use_epoll_and_warn_once(program: Program, name: str) -> None:
    code = f"{SMOKE}\nuringloop.new_event_loop().close()\nprint(loop)"
    ended = program(code, refuse=name, URINGLOOP_ENGINE="", PYTHONWARNINGS="default")
    assert "engine=epoll" in ended.stdout
    assert ended.stderr.count("UringUnavailableWarning") == 1
    assert f"({name})" in ended.stderr and "To allow it:" in ended.stderr


@pytest.mark.skipif(refusal() is not None, reason="this machine refuses io_uring itself")
@pytest.mark.parametrize("name", ["EPERM", "ENOSYS"])
def test_without_io_uring_engine_uring_raises_with_cause_and_remedy(program: Program, name: str) -> None:
    code = """
import uringloop
try:
    uringloop.new_event_loop(engine="uring")
except uringloop.UringUnavailable as error:
    assert isinstance(error, OSError)
    print(error.errno, error)
"""
    ended = program(code, refuse=name)
    number, message = ended.stdout.split(" ", 1)
    assert int(number) == getattr(errno, name)
    assert "io_uring is refused here:" in message and "To allow it:" in message
    assert ended.stderr == ""
    assert (
        "engine=epoll"
        in program(
            "import uringloop; loop = uringloop.new_event_loop(engine='epoll'); print(loop); loop.close()",
            refuse=name,
        ).stdout
    )


@pytest.mark.skipif(refusal() is not None, reason="this machine refuses io_uring itself")
def test_the_environment_may_insist_too(program: Program) -> None:
    ended = program(
        "import uringloop; uringloop.new_event_loop()", refuse="EPERM", URINGLOOP_ENGINE="uring", check=False
    )
    assert "UringUnavailable" in ended.stderr and ended.returncode


@pytest.mark.skipif(refusal() is not None, reason="this machine refuses io_uring itself")
@pytest.mark.parametrize("name", ["ENOMEM", "EMFILE"])
def test_a_shortage_is_an_error_and_no_refusal(program: Program, name: str) -> None:
    if locked_memory(OSError(getattr(errno, name), "")) is not None:
        pytest.skip("here it is the limit of locked memory that falls short")
    ended = program(
        "import uringloop; uringloop.new_event_loop()", refuse=name, URINGLOOP_ENGINE="", check=False
    )
    assert "OSError" in ended.stderr and "io_uring_setup" in ended.stderr
    assert "UringUnavailable" not in ended.stderr
