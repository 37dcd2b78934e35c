"""Rings that take only what uringloop uses: the list is complete, and has nothing that is not used."""

from __future__ import annotations

import ctypes
import os
import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import uringloop
from tests._core.kernel.test_probe import SMOKE
from uringloop._core.kernel import restriction
from uringloop._core.kernel.probe import SWITCHES, offered, refusal

Program = Callable[..., Any]

PROJECT = Path(__file__).resolve().parents[3]
CORE = PROJECT / "uringloop/_core"
WITHOUT_RING = {"probe.pyx", "restriction.pyx"}
RESTRICTED = pytest.mark.skipif(
    refusal() is not None or not offered()["restrictions"], reason="no ring can be restricted here"
)
IO_URING_REGISTER = 427
REGISTER_EVENTFD = 4


def constants() -> dict[str, int]:
    """The numbers in abi.h."""
    text = (CORE / "kernel/abi.h").read_text()
    found = {}
    for name, shift, number in re.findall(r"#define (IO\w+) \(?(1U << )?(\d+)\)?$", text, re.MULTILINE):
        found[name] = 1 << int(number) if shift else int(number)
    enumerated = re.search(r"enum \{\s*(IORING_OP_NOP.*?)\};", text, re.DOTALL)
    assert enumerated is not None
    names = re.findall(r"IORING_OP_\w+", enumerated[1])
    return found | {name: number for number, name in enumerate(names)}


def used(prefix: str) -> set[str]:
    """The constants with this prefix in the code of the core that works with a loop's ring."""
    found: set[str] = set()
    for path in CORE.rglob("*.pyx"):
        if path.name not in WITHOUT_RING:
            code = re.sub(r"#.*", "", path.read_text())
            code = re.sub(r"^from .* cimport \([^)]*\)", "", code, flags=re.MULTILINE)
            found.update(re.findall(rf"\b{prefix}\w+", code))
    return found


def test_the_operations_are_those_that_the_core_submits() -> None:
    number = constants()
    assert {number[name] for name in used("IORING_OP_")} == restriction.OPERATIONS


def test_the_register_calls_are_those_that_the_core_makes() -> None:
    number = constants()
    made = used("IORING_REGISTER_") | used("IORING_UNREGISTER_")
    made.discard("IORING_REGISTER_ENABLE_RINGS")  # the one that begins the restriction
    assert {number[name] for name in made} == restriction.CALLS


def test_the_flags_are_those_that_the_core_sets() -> None:
    number = constants()
    assert sum(number[name] for name in used("IOSQE_")) == restriction.FLAGS


def test_the_names_stand_at_their_numbers() -> None:
    for name, number in constants().items():
        if name.startswith("IORING_OP_"):
            assert restriction.NAMES[number] == name.removeprefix("IORING_OP_").lower()


@RESTRICTED
@pytest.mark.engines("uring")
@pytest.mark.parametrize("tiny", ["0", "1"])
@pytest.mark.parametrize("without", ["", "defer_taskrun", "defer_taskrun,coop_taskrun,buffer_ring", "all"])
def test_the_core_works_restricted(engine: str, program: Program, without: str, tiny: str) -> None:
    if without == "all":
        without = ",".join(name for name in SWITCHES if name != "restrictions")
    found = program(SMOKE, URINGLOOP_RESTRICT="1", URINGLOOP_DISABLE=without, URINGLOOP_TINY=tiny)
    assert eval(found.stdout)["restrictions"] is True


FILES = """
import asyncio, os, sys, tempfile
import uringloop
from uringloop import fs

async def main(folder):
    loop = asyncio.get_running_loop()
    path = os.path.join(folder, "a")
    async with await uringloop.open_file(path, "w+b") as file:
        await file.write(bytes(100_000))
        await file.flush()
        await file.fsync()
        await file.truncate(50_000)
        await file.seek(0)
        assert len(await file.read()) == 50_000
        assert (await fs.stat(file.fileno())).st_size == 50_000
    await fs.rename(path, path + "b")
    await fs.link(path + "b", path)
    await fs.symlink(path, path + "c")
    await fs.mkdir(path + "d")
    assert (await fs.stat(path)).st_size == 50_000
    await fs.copyfile(path, path + "e")
    await fs.unlink(path)
    await fs.rmdir(path + "d")
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", "")
    assert await process.wait() == 0

with tempfile.TemporaryDirectory() as folder, asyncio.Runner(loop_factory=uringloop.new_event_loop) as runner:
    runner.run(main(folder))
"""


@RESTRICTED
@pytest.mark.engines("uring")
def test_files_and_processes_work_restricted(engine: str, program: Program) -> None:
    program(FILES, URINGLOOP_RESTRICT="1")


def rings() -> set[int]:
    found = set()
    for name in os.listdir("/proc/self/fd"):
        try:
            if "io_uring" in os.readlink(f"/proc/self/fd/{name}"):
                found.add(int(name))
        except OSError:
            pass  # the listing's own
    return found


def registers_an_eventfd(ring: int) -> bool:
    """Whether the calling thread may make a register call that the core doesn't make."""
    libc = ctypes.CDLL(None, use_errno=True)
    eventfd = os.eventfd(0, os.EFD_CLOEXEC)
    argument = ctypes.c_int(eventfd)
    made = libc.syscall(IO_URING_REGISTER, ring, REGISTER_EVENTFD, ctypes.byref(argument), 1)
    os.close(eventfd)
    if made < 0:
        assert ctypes.get_errno() == 13, "EACCES"
    return bool(made == 0)


@RESTRICTED
@pytest.mark.engines("uring")
@pytest.mark.parametrize("value", ["1", "socket,futex_wait", "0", ""])
def test_every_ring_of_a_loop_is_restricted(
    engine: str, monkeypatch: pytest.MonkeyPatch, new_loop: Any, value: str
) -> None:
    monkeypatch.setenv("URINGLOOP_RESTRICT", value)
    before = rings()
    loop = new_loop()
    monkeypatch.delenv("URINGLOOP_RESTRICT")  # what the loop was made with counts

    async def may_register() -> bool:
        (ring,) = rings() - before
        return registers_an_eventfd(ring)

    unrestricted = value in ("0", "")
    assert loop.run_until_complete(may_register()) is unrestricted
    with ThreadPoolExecutor(1) as thread:  # there it has another ring
        assert thread.submit(loop.run_until_complete, may_register()).result() is unrestricted
    assert loop.run_until_complete(may_register()) is unrestricted


@RESTRICTED
@pytest.mark.engines("uring")
def test_an_operation_that_does_not_exist_is_an_error(engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("URINGLOOP_RESTRICT", "1,warp_drive")
    with pytest.raises(ValueError, match="URINGLOOP_RESTRICT names no operation: warp_drive"):
        uringloop.new_event_loop()


MADE = """
import uringloop
try:
    loop = uringloop.new_event_loop()
except uringloop.UringUnavailable as error:
    print(error)
else:
    print(loop)
    loop.close()
"""


@RESTRICTED
def test_a_kernel_without_restrictions_is_no_kernel_for_it(program: Program) -> None:
    def made(engine: str) -> Any:
        old = {"URINGLOOP_DISABLE": "restrictions", "URINGLOOP_RESTRICT": "1", "PYTHONWARNINGS": "default"}
        return program(MADE, URINGLOOP_ENGINE=engine, **old)

    assert "URINGLOOP_RESTRICT asks for restricted rings" in made("uring").stdout
    ended = made("auto")
    assert "engine=epoll" in ended.stdout
    assert "URINGLOOP_RESTRICT asks for restricted rings" in ended.stderr
    ended = made("epoll")
    assert "engine=epoll" in ended.stdout and not ended.stderr
