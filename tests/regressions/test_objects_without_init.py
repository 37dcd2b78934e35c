"""No call from Python crashes the process, whatever the object lacks: a subclass may forget `super().__init__()`,
`__new__` leaves it out, and private methods can be called."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import uringloop
from tests.regressions.objects_without_init import what
from uringloop.files import ByteFile, FixedBuffers

HERE = Path(__file__).parent
MOST = 20  # crashes that one test reports


def crashes(tmp_path: Path, program: str, *args: str) -> list[str]:
    """What crashed. The process is started again without each crash, to find the next."""
    found: list[str] = []
    progress = tmp_path / "progress"
    while len(found) < MOST:
        progress.write_text("the start")
        command = [sys.executable, str(HERE / program), *args, str(progress), *found]
        paths = f"{HERE}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"
        ended = subprocess.run(
            command,
            env=os.environ | {"PYTHONPATH": paths},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        last = progress.read_text().strip().partition("\n")[0]
        if ended.returncode == 0:
            return found
        assert ended.returncode < 0, f"{last}: exit {ended.returncode}\n{ended.stderr}"
        found.append(what(last))
    return found


@pytest.mark.parametrize("where", ["outside", "inside", "functions"])
@pytest.mark.parametrize("package", [".", "_core", "files", "scheduler", "sync"])
def test_objects_without_init_raise(tmp_path: Path, package: str, where: str) -> None:
    assert crashes(tmp_path, "objects_without_init.py", package, where) == []


@pytest.mark.parametrize(
    "kind", ["handles", "transports", "tls", "files", "primitives", "operations", "engines", "loops"]
)
def test_private_calls_on_live_objects_raise(tmp_path: Path, kind: str) -> None:
    assert crashes(tmp_path, "live_objects.py", kind) == []


@pytest.mark.parametrize("base", [uringloop.Queue, uringloop.LifoQueue, uringloop.PriorityQueue])
def test_a_queue_without_init_raises_a_runtime_error(base: type[uringloop.Queue[int]]) -> None:
    class Forgetful(base):  # type: ignore[valid-type,misc]
        def __init__(self) -> None:
            pass

    queue = Forgetful()
    for call in (queue.get_nowait, lambda: queue.put_nowait(1), queue.get_sync, lambda: queue.put_sync(1)):
        with pytest.raises(RuntimeError, match=r"__init__\(\) was not called"):
            call()
    queue.shutdown(immediate=True)
    assert "maxsize=None" in repr(queue)


def test_a_second_init_of_a_queue_raises_a_runtime_error() -> None:
    queue: uringloop.Queue[int] = uringloop.Queue(3)
    queue.put_nowait(1)
    uringloop.Queue.__init__(queue, 3)
    with pytest.raises(RuntimeError, match="called already"):
        uringloop.Queue.__init__(queue, 4)
    assert (queue.get_nowait(), queue.maxsize) == (1, 3)


def test_a_semaphore_without_init_raises_a_runtime_error() -> None:
    class Forgetful(uringloop.Semaphore):
        def __init__(self) -> None:
            pass

    with pytest.raises(RuntimeError, match=r"__init__\(\) was not called"):
        Forgetful().acquire_sync()


def test_a_barrier_without_init_raises_a_runtime_error() -> None:
    class Forgetful(uringloop.Barrier):
        def __init__(self) -> None:
            pass

    async def wait() -> None:
        await Forgetful().wait()

    with pytest.raises(RuntimeError, match=r"__init__\(\) was not called"):
        Forgetful().wait_sync()
    with pytest.raises(RuntimeError, match=r"__init__\(\) was not called"):
        uringloop.run(wait())


def test_fixed_buffers_without_init_raise_a_runtime_error() -> None:
    class Forgetful(FixedBuffers):
        def __init__(self) -> None:
            pass

    with pytest.raises(RuntimeError, match=r"__init__\(\) was not called"):
        Forgetful().lend_nowait()


def test_a_loop_without_init_raises_a_runtime_error() -> None:
    class Forgetful(uringloop.EventLoop):
        def __init__(self) -> None:
            pass

    loop = Forgetful()
    assert loop.is_closed()
    loop._closed = False  # as BaseEventLoop.__init__ says
    for call in (loop.run_forever, lambda: loop.call_soon(print), lambda: loop.call_soon_threadsafe(print)):
        with pytest.raises(RuntimeError, match=r"Forgetful.__init__\(\) was not called"):
            call()
    loop.close()


def test_a_loop_refuses_a_second_init_and_stays_closed() -> None:
    loop = uringloop.new_event_loop()
    with pytest.raises(RuntimeError, match="called already"):
        uringloop.EventLoop.__init__(loop)
    loop.close()
    with pytest.raises(RuntimeError, match="stays closed"):
        loop._closed = False
    with pytest.raises(RuntimeError, match="closed"):
        loop.run_forever()


def test_python_code_cannot_instantiate_or_subclass_internal_classes() -> None:
    loop = uringloop.new_event_loop()
    handle = loop.call_soon(print)
    for cls in (type(handle), uringloop._core.handoff.waitlist.Waiter):  # type: ignore[attr-defined]
        for make in (cls, lambda cls=cls: cls.__new__(cls), lambda cls=cls: object.__new__(cls)):
            with pytest.raises(TypeError):
                make()
        with pytest.raises(TypeError):
            type("Derived", (cls,), {})
    with pytest.raises(TypeError):
        type("Derived", (ByteFile,), {})
    loop.close()
