"""The compiled modules: one shared object holds all of them, and each is imported by its own name."""

import importlib
import importlib.util
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
    for name in (
        "os",
        "uringloop",
        "uringloopx",
        "uringloop.",
        "uringloop.loop",
        "uringloop._core.loop.no",
        "\udc80",
    ):
        if name.isprintable():
            assert _compiled.find_spec(name, None, None) is None
        else:
            with pytest.raises(UnicodeEncodeError):
                _compiled.find_spec(name, None, None)
    with pytest.raises(TypeError):
        _compiled.find_spec(1)
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("uringloop._core.loop.no")


def test_only_its_own_modules_are_made() -> None:
    for name in ("os", "uringloop._core"):
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
