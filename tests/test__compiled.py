"""The compiled modules: one shared object holds all of them, and each is imported by its own name."""

import importlib
import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

import uringloop
from uringloop import _compiled


def test_each_module_has_its_own_name_and_the_file_of_all() -> None:
    names = _compiled.names()
    assert len(names) > 60 and len(set(names)) == len(names)
    for name in names:
        module = importlib.import_module(name)
        assert module.__name__ == name and module.__spec__ is not None and module.__spec__.name == name
        assert module.__file__ == _compiled.__file__ and module.__loader__ is _compiled
        assert module.__package__ == name.rpartition(".")[0]
        assert sys.modules[name] is module


def test_two_modules_may_end_in_the_same_name() -> None:
    tls = importlib.import_module("uringloop._core.tls.transport")
    plain = importlib.import_module("uringloop._core.transport.transport")
    assert tls is not plain and hasattr(tls, "TlsTransport") and hasattr(plain, "Transport")


def test_classes_say_where_they_are() -> None:
    for name in _compiled.names():
        for found in vars(importlib.import_module(name)).values():
            if isinstance(found, type) and found.__module__.startswith("uringloop."):
                assert getattr(sys.modules[found.__module__], found.__name__) is found


def test_a_folder_without_code_is_a_package_where_python_files_are_found() -> None:
    core = importlib.import_module("uringloop._core.engine")
    assert list(core.__path__) == [str(Path(uringloop.__file__).parent / "_core/engine")]
    assert importlib.util.find_spec("uringloop._core.engine.workers") is not None


def test_other_names_are_left_to_other_finders() -> None:
    for name in ("os", "uringloop", "uringloopx", "uringloop.", "uringloop.loop", "uringloop._core.loop.no"):
        assert _compiled.find_spec(name, None, None) is None
    assert _compiled.find_spec("uringloop._core.loop.loop\0x") is None
    with pytest.raises(UnicodeEncodeError):
        _compiled.find_spec("\udc80")
    with pytest.raises(TypeError):
        _compiled.find_spec(1)  # type: ignore[arg-type]
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("uringloop._core.loop.no")


FAILING = """
import os, sys
for _ in range(2):
    os.environ["URINGLOOP_PLAIN"] = "nothing"
    try:
        import uringloop
    except ValueError as error:
        assert "names no such piece" in str(error)
    else:
        sys.exit("it was imported")
    assert "uringloop._core.loop.handle" not in sys.modules, "a module that has failed"
"""


def test_a_module_that_fails_is_not_left_half_made() -> None:
    done = subprocess.run([sys.executable, "-c", FAILING], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_only_its_own_modules_are_made() -> None:
    for name in ("os", "uringloop.loop"):
        with pytest.raises(ImportError, match="no compiled module"):
            _compiled.create_module(importlib.machinery.ModuleSpec(name, None))
    with pytest.raises(ImportError, match="no compiled module"):
        _compiled.exec_module(importlib)
    with pytest.raises(TypeError):
        _compiled.exec_module(1)


def test_a_module_is_made_once() -> None:
    module = importlib.import_module("uringloop._core.loop.timers")
    found = vars(module).copy()
    assert _compiled.create_module(module.__spec__) is module
    _compiled.exec_module(module)
    assert vars(module) == found


IMPORTED = """
import asyncio, sys
before = set(sys.modules)
import uringloop
loop = uringloop.new_event_loop()
loop.run_until_complete(asyncio.sleep(0))
loop.close()
print(*sorted(set(sys.modules) - before))
"""


def test_what_a_first_loop_imports() -> None:
    """Rooms that not every program needs are imported when they are used. What they need of Python is large, too."""
    done = subprocess.run([sys.executable, "-c", IMPORTED], capture_output=True, text=True, check=True)
    imported = set(done.stdout.split())
    assert "uringloop._core.loop.loop" in imported
    unwanted = (
        "files",
        "ops",
        "sync",
        "scheduler",
        "_core.tls",
        "_core.handoff",
        "net.tls",
        "net.subprocesses",
    )
    for name in imported:
        assert not name.startswith(tuple(f"uringloop.{each}" for each in unwanted)), name
    assert not imported & {"dataclasses", "pathlib", "secrets", "tempfile", "shutil", "queue"}


LATER = """
import sys
import uringloop
from uringloop.later import Later
later = [name for name, value in vars(uringloop.EventLoop).items() if isinstance(value, Later)]
print(len(later))
class Sub(uringloop.EventLoop):
    def start_tls(self): return super().start_tls
loop = Sub()
base = loop.start_tls()
assert base.__self__ is loop and base.__func__ is vars(uringloop.EventLoop)["start_tls"], base
for name in later:
    found = getattr(uringloop.EventLoop, name)
    assert callable(found) and vars(uringloop.EventLoop)[name] is found, name
    assert getattr(loop, name).__func__ is vars(Sub).get(name, found), name
loop.close()
"""


def test_methods_that_are_imported_later_are_methods_like_others() -> None:
    done = subprocess.run([sys.executable, "-c", LATER], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 5
