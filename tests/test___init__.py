"""The names that the package offers."""

from __future__ import annotations

import ast
import subprocess
from collections.abc import Callable
from pathlib import Path

import uringloop
from uringloop import errors

Program = Callable[..., subprocess.CompletedProcess[str]]


def test_dir_lists_the_public_names_and_no_others() -> None:
    assert dir(uringloop) == sorted(uringloop.__all__)
    assert [name for name in uringloop.__all__ if not hasattr(uringloop, name)] == []


def test_all_that_a_program_may_catch_is_public() -> None:
    kinds = {value for value in vars(errors).values() if isinstance(value, type)}
    assert kinds == {getattr(uringloop, kind.__name__) for kind in kinds}
    assert issubclass(uringloop.BuffersClosed, RuntimeError)


def test_the_type_checker_sees_the_same_names() -> None:
    tree = ast.parse(Path(uringloop.__file__).read_text())
    imported = {
        alias.name for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) for alias in node.names
    }
    assert set(uringloop.__all__) <= imported


def test_the_import_and_dir_load_no_room_that_a_server_does_without(program: Program) -> None:
    code = "import sys, uringloop; before = set(sys.modules); dir(uringloop); print(*(set(sys.modules) - before))"
    assert program(code).stdout == "\n"
    loaded = program("import sys, uringloop; print(*sys.modules)").stdout.split()
    rooms = ("scheduler", "sync", "files", "policy", "startup", "redirects")
    assert [name for name in loaded if name.startswith(tuple(f"uringloop.{room}" for room in rooms))] == []


def test_a_star_import_takes_all_of_them(program: Program) -> None:
    code = "from uringloop import *\nimport uringloop\nprint([n for n in uringloop.__all__ if n not in globals()])"
    assert program(code).stdout == "[]\n"
