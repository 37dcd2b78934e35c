"""Programs that choose uvloop, or leave the choice to uvicorn, run on uringloop. Stand-ins play uvloop and uvicorn
here; tests/integrations runs the real ones."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from uringloop import policy, redirects

UVLOOP = """
import asyncio  # late, as a program may import uvloop first

class Loop(asyncio.SelectorEventLoop):
    pass

def new_event_loop():
    return Loop()

if hasattr(asyncio, "AbstractEventLoopPolicy"):
    class EventLoopPolicy(asyncio.DefaultEventLoopPolicy):
        _loop_factory = Loop

def install():
    asyncio.set_event_loop_policy(EventLoopPolicy())

def run(main, *, loop_factory=new_event_loop, debug=None):
    with asyncio.Runner(loop_factory=loop_factory, debug=debug) as runner:
        return runner.run(main)
"""

UVICORN = """
class Config:
    def __init__(self, app, loop="auto"):
        self.loop = loop

    def get_loop_factory(self):
        pass
"""

NAME = """
async def name():
    return type(asyncio.get_running_loop()).__module__
"""

LINE = "uringloop run: uvloop makes uringloop's loops here (--keep-uvloop leaves it alone)\n"

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def run(engine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs a program that finds the stand-ins: with `uringloop run` and these options; None: without it."""
    (tmp_path / "uvloop.py").write_text(UVLOOP)
    (tmp_path / "uvicorn").mkdir()
    (tmp_path / "uvicorn/__init__.py").write_text("")
    (tmp_path / "uvicorn/config.py").write_text(UVICORN)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=os.pathsep)
    script = tmp_path / "program.py"

    def run(code: str, options: list[str] | None) -> subprocess.CompletedProcess[str]:
        script.write_text(code)
        ours = [] if options is None else ["-m", "uringloop", "run", *options]
        command = [sys.executable, "-W", "ignore::DeprecationWarning", *ours, str(script)]
        ended = subprocess.run(command, capture_output=True, text=True, timeout=30)
        assert ended.returncode == 0, ended.stderr
        return ended

    return run


def test_each_way_to_uvloop_s_loop_leads_to_ours(run: Run) -> None:
    code = f"""
import uvloop, asyncio
from uvloop import Loop, new_event_loop
{NAME}
async def same():
    assert isinstance(asyncio.get_running_loop(), uvloop.Loop)
    return await name()

print(uvloop.run(same()), uvloop.run(same(), loop_factory=Loop, debug=True))
for loop in new_event_loop(), Loop():
    print(loop.run_until_complete(name()))
    loop.close()
uvloop.install()
print(asyncio.run(name()))
if hasattr(asyncio, "AbstractEventLoopPolicy"):
    loop = uvloop.EventLoopPolicy().new_event_loop()
    assert type(loop).__module__ == "uringloop.loop"
    loop.close()
    asyncio.set_event_loop_policy(uvloop.EventLoopPolicy())
    print(asyncio.run(name()))
else:
    print(type(asyncio.new_event_loop()).__module__)
"""
    ended = run(code, [])
    assert ended.stdout.split() == ["uringloop.loop"] * 6
    assert ended.stderr == LINE


def test_uvloop_s_run_in_a_running_loop_is_an_error_by_its_name(run: Run) -> None:
    code = f"""
import uvloop, asyncio
{NAME}
async def main():
    inner = name()
    try:
        uvloop.run(inner)
    except RuntimeError as error:
        print(error)
    inner.close()

uvloop.run(main())
"""
    ended = run(code, [])
    assert (ended.stdout, ended.stderr) == ("uvloop.run() cannot be called from a running event loop\n", LINE)


SPAWN = f"""
import asyncio, multiprocessing, subprocess, sys, uvloop
{NAME}
def work():
    print(uvloop.run(name()), flush=True)

if __name__ == "__main__":
    for method in "spawn", "fork", "forkserver":
        process = multiprocessing.get_context(method).Process(target=work)
        process.start()
        process.join()
    code = "import uvloop, asyncio; asyncio.run(asyncio.sleep(0)); loop = uvloop.new_event_loop();"
    subprocess.run([sys.executable, "-c", code + "print(type(loop).__module__, flush=True); loop.close()"])
    work()
"""


def test_processes_that_the_program_starts_run_on_ours(run: Run) -> None:
    ended = run(SPAWN, [])
    assert ended.stdout.split() == ["uringloop.loop"] * 5
    assert set(ended.stderr.splitlines(keepends=True)) == {LINE}


def test_keep_uvloop_leaves_it_alone_there_too(run: Run) -> None:
    ended = run(SPAWN, ["--keep-uvloop"])
    assert set(ended.stdout.split()) == {"uvloop"}
    assert ended.stderr == ""


CONFIG = """
import uvicorn.config, asyncio, uvloop
print([uvicorn.config.Config("app", loop=name).loop for name in ("auto", "asyncio", "uvloop", "none", "a:b")])
print(uvicorn.config.Config("app").loop)
"""
OURS = "uringloop:new_event_loop"


def test_uvicorn_s_own_choice_is_ours(run: Run) -> None:
    assert run(CONFIG, []).stdout == f"{[OURS, OURS, 'uvloop', 'none', 'a:b']}\n{OURS}\n"


def test_uvicorn_chooses_uvloop_where_that_is_kept(run: Run) -> None:
    assert run(CONFIG, ["--keep-uvloop"]).stdout == f"{['auto', OURS, 'uvloop', 'none', 'a:b']}\nauto\n"


@pytest.mark.parametrize(("there", "names"), [(True, {"asyncio"}), (False, {"asyncio", "auto"})])
def test_a_uvloop_that_is_not_there_is_not_kept(
    there: bool, names: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(redirects.KEEP, "1")
    monkeypatch.setattr(redirects, "find_spec", lambda name: there or None)
    monkeypatch.setattr(redirects, "_installed", False)
    monkeypatch.setattr(policy, "install", lambda: None)
    monkeypatch.setattr(policy, "uvicorn_names", {"auto"})
    redirects.change_asyncio(asyncio)
    assert policy.uvicorn_names == names


@pytest.mark.parametrize("beginning", ["import uvicorn.config", ""])
def test_install_is_uvicorn_s_choice_where_the_program_names_none(run: Run, beginning: str) -> None:
    ended = run(f"{beginning}\nimport uringloop\nuringloop.install()\nuringloop.install()\n{CONFIG}", None)
    assert ended.stdout == f"{[OURS, 'asyncio', 'uvloop', 'none', 'a:b']}\n{OURS}\n"
    assert ended.stderr == ""


@pytest.mark.skipif(not hasattr(asyncio, "AbstractEventLoopPolicy"), reason="policies left Python with 3.16")
def test_another_policy_ends_what_install_began(run: Run) -> None:
    code = "import uringloop, asyncio\nuringloop.install()\nasyncio.set_event_loop_policy(None)"
    assert run(f"{code}\n{CONFIG}", None).stdout.endswith("\nauto\n")


def test_uvicorn_before_0_36_leaves_the_choice_to_the_policy(run: Run, tmp_path: Path) -> None:
    older = UVICORN.replace("get_loop_factory", "setup_event_loop")
    (tmp_path / "uvicorn/config.py").write_text(older)
    assert run(f"import uringloop\nuringloop.install()\n{CONFIG}", None).stdout.endswith("\nnone\n")
