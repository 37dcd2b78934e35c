"""Every test runs on every engine that can run it, and leaves nothing behind.

A test that asks for `loop`, `new_loop` or `engine` is run once on each engine: uring where the kernel lets
us, epoll, and in a debug build the fake one. `@pytest.mark.contract` says that a test asserts what asyncio
promises: it also runs on stock asyncio, so that what it asserts is true. `@pytest.mark.engines("uring")` says
which engines can run it. URINGLOOP_TEST_ENGINES=uring,asyncio narrows all of it down.

The fake engine's seed is always the same, so that a change is judged by itself and not by its luck. Others are for
looking around: URINGLOOP_SEED=<seed>, or URINGLOOP_SEED=random, which `make stress` does; the header names it. The
same with the examples that hypothesis makes: others with URINGLOOP_SEED=random."""

from __future__ import annotations

import asyncio
import gc
import os
import random
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import hypothesis
import pytest

import uringloop
from uringloop._core.cpython.canaries import forced_plain
from uringloop._core.kernel.probe import offered, refusal
from uringloop._core.lifetime.counters import DEBUG_BUILD, counters

STOCK = "asyncio"
SEED = os.environ.get("URINGLOOP_SEED") or "1"
hypothesis.settings.register_profile("uringloop", derandomize=SEED != "random")
hypothesis.settings.load_profile("uringloop")
if SEED == "random":
    SEED = str(random.randrange(10**6))
TESTS = Path(__file__).parent

passed = pytest.StashKey[bool]()
last_of_file = pytest.StashKey[bool]()

# Without the GIL a collection looks at every object, frozen or not: with so many tests that took nearly half of a run.
# There the tests of a file share one, at its end, unless one of them left something.
COLLECTION_FOR_EACH_TEST = getattr(sys, "_is_gil_enabled", lambda: True)()


def available_engines() -> list[str]:
    """What this build on this kernel can run, stock asyncio last; of that what the environment chooses."""
    found = ["uring"] if refusal() is None else []
    found += ["epoll", "fake"] if DEBUG_BUILD else ["epoll"]
    found.append(STOCK)
    chosen = os.environ.get("URINGLOOP_TEST_ENGINES")
    return [name for name in found if name in chosen.split(",")] if chosen else found


ENGINES = available_engines()


def pytest_configure(config: pytest.Config) -> None:
    # A job in a shell's background, or behind nohup, is started so, and programs that tests interrupt would inherit it.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
        signal.signal(signal.SIGHUP, signal.SIG_DFL)
    config.addinivalue_line(
        "markers", "contract: asserts what asyncio promises, so runs on stock asyncio too"
    )
    config.addinivalue_line("markers", "engines(*names): the engines that can run the test")
    config.addinivalue_line(
        "markers", "relies_on(piece): asserts what the piece's plain path can't do; canaries.py lists pieces"
    )


def pytest_report_header() -> str:
    build = "debug" if DEBUG_BUILD else "release"
    return f"uringloop: {build} build, engines {', '.join(ENGINES)}, URINGLOOP_SEED={SEED}"


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "engine" not in metafunc.fixturenames:
        return
    names = [name for name in ENGINES if name != STOCK]
    if metafunc.definition.get_closest_marker("contract"):
        names = ENGINES
    only = metafunc.definition.get_closest_marker("engines")
    if only:
        names = [name for name in names if name in only.args]
    metafunc.parametrize("engine", names, indirect=True, scope="function")


def pytest_runtest_setup(item: pytest.Item) -> None:
    for mark in item.iter_markers("relies_on"):
        if mark.args[0] in forced_plain():
            pytest.skip(f"URINGLOOP_PLAIN={mark.args[0]}: its plain path can't do this")


def pytest_collection_finish() -> None:
    # What exists by now is no test's garbage: each test's collection need not look at it.
    gc.collect()
    gc.freeze()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    item.stash[last_of_file] = nextitem is None or nextitem.path != item.path


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Any:
    # pytest parses the source of a test that failed. CPython before 3.11.8 raises SystemError there if the collector
    # runs meanwhile and destroys a loop or a task that logs a traceback, which is parsed, too (gh-106905).
    collecting = gc.isenabled()
    gc.disable()
    try:
        report = yield
    finally:
        if collecting:
            gc.enable()
    if report.when == "call":
        item.stash[passed] = report.passed
    return report


def open_descriptors() -> set[tuple[int, str]]:
    found = set()
    for name in os.listdir("/proc/self/fd"):
        with suppress(OSError):  # the listing's own
            found.add((int(name), os.readlink(f"/proc/self/fd/{name}")))
    return found


def living() -> dict[str, int]:
    """What the core made and did not free yet, by kind; zeros in a release build."""
    return {kind: made - freed for kind, (made, freed) in counters().items()}


@pytest.fixture(autouse=True)
def nothing_is_left(request: pytest.FixtureRequest, caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """No descriptor, no thread and, in a debug build, no op, handle, timer or buffer outlives its test."""
    descriptors, threads, objects = open_descriptors(), set(threading.enumerate()), living()
    yield
    if not request.node.stash.get(passed, False):
        return  # what failed may leave things behind, in its traceback for one
    for thread in set(threading.enumerate()) - threads:
        thread.join(10)
        assert not thread.is_alive(), f"{thread} outlives the test"
    request.node.funcargs.clear()  # pytest's own references to the test's loops, and to what was logged
    caplog.get_records("call").clear()
    collect = COLLECTION_FOR_EACH_TEST or request.node.stash[last_of_file]
    if not collect and living() == objects and not open_descriptors() - descriptors:
        return
    for _ in range(3):  # what one collection finalises another frees
        gc.collect()
        if living() == objects:
            break
    assert open_descriptors() - descriptors == set()
    assert living() == objects
    # What survived belongs to pytest or to modules: without this, each collection takes longer than the last.
    gc.freeze()


@pytest.fixture
def engine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """The engine this run of the test is for, which `uringloop.run` and child processes use as well."""
    name: str = request.param
    if name != STOCK:
        monkeypatch.setenv("URINGLOOP_ENGINE", name)
    monkeypatch.setenv("URINGLOOP_SEED", f"{SEED}/{request.node.nodeid}")
    return name


@pytest.fixture
def new_loop(engine: str) -> Iterator[Callable[..., Any]]:
    """Makes loops of the engine; closes what the test did not close."""
    made: list[Any] = []

    def make(**options: Any) -> Any:
        made.append(asyncio.new_event_loop() if engine == STOCK else uringloop.new_event_loop(**options))
        return made[-1]

    yield make
    for loop in made:
        if loop.is_closed() or loop.is_running():
            continue
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.run_until_complete(loop.shutdown_default_executor())
        loop.close()


@pytest.fixture
def loop(new_loop: Callable[..., Any]) -> Any:
    """An event loop of the engine, not running."""
    return new_loop()


@pytest.fixture
def program() -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs Python code in a process of its own, with this build and engine; its output is text.

    `refuse` is an errno's name: a seccomp filter answers it to io_uring's three system calls; or KILL."""

    def run(
        code: str, *arguments: str, refuse: str = "", check: bool = True, **environment: str
    ) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-c", code, *arguments]
        if refuse:
            command = [sys.executable, str(TESTS / "refuse_io_uring.py"), refuse, *command[1:]]
        ended = subprocess.run(
            command, capture_output=True, text=True, timeout=60, env={**os.environ, **environment}
        )
        if check:
            assert ended.returncode == 0, ended.stderr
        return ended

    return run


@pytest.fixture
def feature(engine: str) -> Callable[[str], bool]:
    """Whether the uring engine uses a probed feature here."""
    return lambda name: engine == "uring" and offered()[name]
