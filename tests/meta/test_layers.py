"""A room uses the rooms before it, never one behind it; the files of a room don't use each other in a circle."""

import importlib.util
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parents[2]
SPEC = importlib.util.spec_from_file_location("rooms", PROJECT / "tools/rooms.py")
assert SPEC is not None
assert SPEC.loader is not None
rooms = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(rooms)

FILES = sorted(path for kind in ("py", "pyx", "pxd") for path in rooms.PACKAGE.rglob(f"*.{kind}"))


def name_of(path: Path) -> str:
    return str(path.relative_to(PROJECT))


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_file_uses_only_lower_rooms(path: Path) -> None:
    here = rooms.room_of(rooms.module_of(path))
    assert here is not None, (
        f"{name_of(path)} has no room: put it into ROOMS of tools/rooms.py where it belongs"
    )
    for module in rooms.imports(path):
        assert module.split(".")[0] == "uringloop", f"{module}: imports are absolute"
        used = rooms.room_of(module)
        if used is not None and used != here:
            assert rooms.ROOMS.index(used) < rooms.ROOMS.index(here), f"{name_of(path)} reaches up to {used}"


@pytest.mark.parametrize("room", rooms.ROOMS)
def test_files_of_a_room_do_not_use_each_other_in_a_circle(room: str) -> None:
    rooms.in_order(room)


def test_the_table_of_rooms_is_up_to_date() -> None:
    assert rooms.page() == rooms.PAGE.read_text(), "`make rooms` writes it"


def test_a_room_for_every_folder_of_the_core() -> None:
    folders = {
        f"_core/{path.name}" for path in (rooms.PACKAGE / "_core").iterdir() if list(path.glob("*.pyx"))
    }
    assert folders <= set(rooms.ROOMS)


def test_import_forms_are_understood() -> None:
    text = """
from uringloop._core.kernel.abi cimport (
    a,  # from uringloop._core.no cimport no
    b as c,
)
from uringloop._core.engine cimport op, ready as r
cimport uringloop._core.loop.timers
from cpython.object cimport PyObject
    from uringloop.errors import UringUnavailable
"""
    assert {
        "uringloop._core.kernel.abi",
        "uringloop._core.engine.op",
        "uringloop._core.engine.ready",
        "uringloop._core.loop.timers",
        "uringloop.errors",
    } <= rooms.compiled_imports(text)
    assert rooms.compiled_imports("from cpython.object cimport PyObject\n") == set()


def test_an_import_cycle_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    room = tmp_path / "uringloop/sync"
    room.mkdir(parents=True)
    (room / "a.pyx").write_text("from uringloop.sync.b cimport x\n")
    (room / "b.pyx").write_text("from uringloop.sync.a cimport x\n")
    monkeypatch.setattr(rooms, "PROJECT", tmp_path)
    monkeypatch.setattr(rooms, "PACKAGE", tmp_path / "uringloop")
    with pytest.raises(ValueError, match="circle"):
        rooms.in_order("sync")
