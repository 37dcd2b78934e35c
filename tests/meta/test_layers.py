"""Imports go up the list only: a file uses what stands before it, never what stands after it."""

import ast
import re
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parents[2]
PACKAGE = PROJECT / "uringloop"

# The compiled core, lowest first. A file that is not here yet is put where it belongs.
CORE = """
    kernel attributes class_exchange clearing unclosed address counters ring probe buffers fixed_table ready op
    engine fixed_buffer uring epoll fake handle timers inbox idler spin watch transport_table loop calls tasks
    coroutine sink transport recv send stream_reader stream_writer stream_feed stream receive_room peers
    outgoing datagram accept accepted epoll_set tls_records tls_backlog tls_application tls tls_transport
    future_op file_op io_refs sock_op resolve child delivery finished patience waitlist wait steps
""".split()

# The rooms of the package, lowest first: modules, and folders as a whole.
ROOMS = """
    version errors _core inspect net files patches loop policy runner ops aiofiles_compat sync scheduler commands
    workers pytest_plugin __init__ __main__
""".split()

IMPORT = re.compile(
    r"^\s*(?:from\s+(?P<source>[\w.]+)\s+c?import\s+(?P<names>\([^)]*\)|[^\n]*)|c?import\s+(?P<modules>[^\n]+))",
    re.MULTILINE,
)


def compiled_imports(text: str) -> set[str]:
    """The modules that a .pyx or .pxd names, as dotted names of the package, or relative ones."""
    found = set()
    for match in IMPORT.finditer(re.sub(r"#[^\n]*", "", text)):
        if match["modules"]:
            found |= {module.split()[0] for module in match["modules"].split(",")}
        else:
            names = [name.split()[0] for name in match["names"].strip("() \n").split(",") if name.strip()]
            found |= {match["source"], *(f"{match['source']}.{name}" for name in names)}
    return {name for name in found if name.split(".")[0] in ("uringloop", "")}


def python_imports(tree: ast.AST) -> set[str]:
    """The modules that a .py names, also inside functions; what only type checkers see does not count."""
    found: set[str] = set()
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            continue
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"line {node.lineno}: imports are absolute"
            found |= {node.module or "", *(f"{node.module}.{alias.name}" for alias in node.names)}
        else:
            found |= python_imports(node)
    return {name for name in found if name.split(".")[0] == "uringloop"}


def layer_of(module: str, prefix: str, layers: list[str]) -> str | None:
    """The name below `prefix` that `module` belongs to; None for what is no module."""
    rest = module.removeprefix(prefix)
    name = rest.split(".")[0]
    return name if rest != module and name in layers else None


def core_files() -> list[Path]:
    return sorted(path for kind in ("pyx", "pxd") for path in PACKAGE.glob(f"_core/*.{kind}"))


def python_files() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


def name_of(path: Path) -> str:
    return str(path.relative_to(PROJECT))


@pytest.mark.parametrize("path", core_files(), ids=name_of)
def test_core_file_uses_only_lower_layers(path: Path) -> None:
    if path.stem == "__init__":
        pytest.skip("a marker for cimport, of no layer")
    assert path.stem in CORE, f"{path.name} has no layer: put it into CORE where it belongs"
    for module in compiled_imports(path.read_text()):
        assert module.split(".")[0] == "uringloop", f"{module}: imports are absolute"
        used = layer_of(module, "uringloop._core.", CORE)
        if used is not None and used != path.stem:
            assert CORE.index(used) < CORE.index(path.stem), f"{path.name} reaches up to {used}"
        room = layer_of(module, "uringloop.", ROOMS)
        assert room in ("errors", "_core", None), f"{path.name} reaches up to uringloop.{room}"


@pytest.mark.parametrize("path", python_files(), ids=name_of)
def test_python_file_uses_only_lower_rooms(path: Path) -> None:
    here = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
    assert here in ROOMS, f"{here} is no room: put it into ROOMS where it belongs"
    for module in python_imports(ast.parse(path.read_text())):
        used = layer_of(module, "uringloop.", ROOMS)
        if used is not None and used != here:
            assert ROOMS.index(used) < ROOMS.index(here), f"{name_of(path)} reaches up to {used}"


def test_import_forms_are_understood() -> None:
    text = """
from uringloop._core.kernel cimport (
    a,  # from uringloop._core.no cimport no
    b as c,
)
from uringloop._core cimport op, ring as r
cimport uringloop._core.loop.timers
from cpython.object cimport PyObject
    from uringloop.errors import UringUnavailable
"""
    assert {
        "uringloop._core.kernel",
        "uringloop._core.engine.op",
        "uringloop._core.kernel.ring",
        "uringloop._core.loop.timers",
        "uringloop.errors",
    } <= compiled_imports(text)
    assert not any("no" in name.split(".") or "cpython" in name for name in compiled_imports(text))
