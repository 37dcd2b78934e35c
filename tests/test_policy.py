"""install() and EventLoopPolicy: plain asyncio programs get our loops. Each in a process of its own."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import uringloop

Program = Callable[..., Any]
POLICIES = hasattr(asyncio, "AbstractEventLoopPolicy")
WITHOUT_POLICIES = str(Path(__file__).parent / "next_python")


@pytest.fixture
def without_policies(monkeypatch: pytest.MonkeyPatch) -> None:
    """Programs run as on Python 3.16."""
    path = os.environ.get("PYTHONPATH", "")
    monkeypatch.setenv("PYTHONPATH", f"{WITHOUT_POLICIES}{os.pathsep}{path}")


def test_install_makes_asyncio_run_use_our_loop(engine: str, program: Program) -> None:
    code = """
import asyncio, threading, uringloop
uringloop.install()

async def main():
    return type(asyncio.get_running_loop()).__module__

assert asyncio.run(main()) == "uringloop.loop"
loop = asyncio.new_event_loop()
assert isinstance(loop, uringloop.EventLoop)
loop.close()
answers = []
thread = threading.Thread(target=lambda: answers.append(asyncio.run(main())))
thread.start()
thread.join()
assert answers == ["uringloop.loop"]
with asyncio.Runner() as runner:
    assert runner.run(main()) == "uringloop.loop"
"""
    assert program(code).stderr == ""


@pytest.mark.skipif(not POLICIES, reason="policies left Python with 3.16")
def test_the_policy_gives_the_main_thread_a_loop_and_others_none(engine: str, program: Program) -> None:
    code = """
import asyncio, threading, warnings, uringloop
warnings.simplefilter("ignore", DeprecationWarning)
asyncio.set_event_loop_policy(uringloop.EventLoopPolicy())
policy = asyncio.get_event_loop_policy()
loop = policy.new_event_loop()
assert isinstance(loop, uringloop.EventLoop)
asyncio.set_event_loop(loop)
assert asyncio.get_event_loop() is loop

def other():
    try:
        asyncio.get_event_loop()
    except RuntimeError as error:
        print(error)

thread = threading.Thread(target=other)
thread.start()
thread.join()
loop.run_until_complete(asyncio.sleep(0))
loop.close()
asyncio.set_event_loop(None)
"""
    assert "There is no current event loop in thread" in program(code).stdout


@pytest.mark.skipif(not POLICIES, reason="policies left Python with 3.16")
def test_the_policy_is_asyncios_with_another_loop() -> None:
    assert uringloop.EventLoopPolicy._loop_factory is uringloop.EventLoop
    assert issubclass(uringloop.EventLoop, asyncio.AbstractEventLoop)


def test_install_without_policies_makes_asyncio_run_use_our_loop(
    engine: str, program: Program, without_policies: None
) -> None:
    code = """
import asyncio, uringloop
assert not hasattr(asyncio, "set_event_loop_policy")

async def main():
    return type(asyncio.get_running_loop()).__module__

assert asyncio.run(main()) == "asyncio.unix_events"
uringloop.install()
assert asyncio.run(main()) == "uringloop.loop"
loop = asyncio.new_event_loop()
assert isinstance(loop, uringloop.EventLoop)
loop.close()
with asyncio.Runner() as runner:
    assert runner.run(main()) == "uringloop.loop"
assert uringloop.run(main()) == "uringloop.loop"
"""
    assert program(code).stderr == ""


def test_install_without_policies_works_inside_a_running_loop(
    engine: str, program: Program, without_policies: None
) -> None:
    code = """
import asyncio, uringloop

async def main():
    uringloop.install()
    return asyncio.new_event_loop()

loop = asyncio.run(main())
assert isinstance(loop, uringloop.EventLoop)
loop.close()
"""
    assert program(code).stderr == ""


def test_install_refuses_where_it_would_have_no_effect(program: Program, without_policies: None) -> None:
    """A later asyncio may no longer look new_event_loop up."""
    code = """
import asyncio, functools, uringloop
asyncio.Runner.__init__ = functools.partialmethod(asyncio.Runner.__init__, loop_factory=asyncio.SelectorEventLoop)
before = asyncio.new_event_loop
try:
    uringloop.install()
except RuntimeError as error:
    assert "uringloop.run(main())" in str(error)
else:
    raise SystemExit("install() says that it worked")
assert asyncio.new_event_loop is asyncio.events.new_event_loop is before
"""
    assert program(code).stderr == ""


def test_other_threads_make_loops_while_install_looks_whether_it_has_an_effect(
    program: Program, without_policies: None
) -> None:
    code = """
import asyncio, concurrent.futures, uringloop

get_loop = asyncio.Runner.get_loop

def get_loop_meanwhile(runner):
    asyncio.Runner.get_loop = get_loop
    with concurrent.futures.ThreadPoolExecutor() as threads:
        made.append(threads.submit(asyncio.events.new_event_loop))
    return get_loop(runner)

made = []

asyncio.Runner.get_loop = get_loop_meanwhile
uringloop.install()
for loop in made[0].result(), asyncio.new_event_loop():
    loop.close()
assert isinstance(loop, uringloop.EventLoop)
"""
    assert program(code).stderr == ""


def test_without_policies_the_policy_says_what_to_use(program: Program, without_policies: None) -> None:
    code = """
import uringloop
assert not hasattr(uringloop, "EventLoopPolicy")
try:
    uringloop.EventLoopPolicy
except AttributeError as error:
    assert "uringloop.run(main())" in str(error)
"""
    assert program(code).stderr == ""


def test_uringloop_run_needs_no_policies(
    engine: str, program: Program, without_policies: None, tmp_path: Path
) -> None:
    (tmp_path / "served.py").write_text(
        "import asyncio\n"
        "async def main(): print(type(asyncio.get_running_loop()).__module__)\n"
        "asyncio.run(main())\n"
    )
    code = f"""
import subprocess, sys
print(subprocess.run([sys.executable, "-m", "uringloop", "run", {str(tmp_path / "served.py")!r}],
                     capture_output=True, text=True, check=True).stdout)
"""
    assert program(code).stdout.strip() == "uringloop.loop"
