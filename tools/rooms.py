"""Writes the table of rooms in docs/design.md from what each folder and file says of itself at its top.

    python tools/rooms.py           writes the table
    python tools/rooms.py --check   says whether it is up to date, and writes nothing

A folder's line is the first sentence of its `__init__.py` or `__init__.pxd`, a file's the first sentence of its header.
Rooms stand in the order of their layers, lowest first, and so do the files of a room: each uses only files above it.
"""

import ast
import itertools
import re
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent
PACKAGE = PROJECT / "uringloop"
PAGE = PROJECT / "docs/design.md"
BEGIN, END = "<!-- rooms: made by `make rooms` -->", "<!-- end of rooms -->"

# The rooms, lowest first: folders, and modules that stand by themselves. A room uses rooms before it, never later ones.
ROOMS = """
    version errors later
    _core/cpython _core/lifetime _core/kernel _core/engine _core/loop _core/awaitables _core/streams
    _core/transport _core/tls _core/handoff
    inspect net files patches loop startup policy redirects runner ops aiofiles_compat sync scheduler commands workers
    pytest_plugin __init__ __main__
""".split()

CIMPORT = re.compile(
    r"^\s*(?:from\s+(?P<source>[\w.]+)\s+c?import\s+(?P<names>\([^)]*\)|[^\n]*)|c?import\s+(?P<modules>[^\n]+))",
    re.MULTILINE,
)


def compiled_imports(text: str) -> set[str]:
    """The modules that a .pyx or .pxd names, as dotted names of the package, or relative ones."""
    found = set()
    for match in CIMPORT.finditer(re.sub(r"#[^\n]*", "", text)):
        if match["modules"]:
            found |= {module.split()[0] for module in match["modules"].split(",")}
        else:
            names = [name.split()[0] for name in match["names"].strip("() \n").split(",") if name.strip()]
            found |= {match["source"], *(f"{match['source']}.{name}" for name in names)}
    return {name for name in found if name.split(".")[0] in ("uringloop", "")}


def python_imports(tree: ast.AST, late: bool = True) -> set[str]:
    """The modules that a .py names, also inside functions if `late`; what only type checkers see does not count."""
    found: set[str] = set()
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            continue
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"line {node.lineno}: imports are absolute"
            found |= {node.module or "", *(f"{node.module}.{alias.name}" for alias in node.names)}
        elif late or not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            found |= python_imports(node, late)
    return {name for name in found if name.split(".")[0] == "uringloop"}


def imports(path: Path, late: bool = True) -> set[str]:
    text = path.read_text()
    return python_imports(ast.parse(text), late) if path.suffix == ".py" else compiled_imports(text)


def sources(room: str) -> list[Path]:
    """The room's .py, .pyx and .pxd files."""
    place = PACKAGE / room
    found = (
        [path for path in place.rglob("*") if path.suffix in (".py", ".pyx", ".pxd")]
        if place.is_dir()
        else []
    )
    found += [path for path in (place.with_suffix(".py"), place.with_suffix(".pyx")) if path.exists()]
    return sorted(found)


def module_of(path: Path) -> str:
    name = ".".join(path.relative_to(PROJECT).with_suffix("").parts)
    return name.removesuffix(".__init__") if path.parent != PACKAGE else name


def room_of(module: str) -> str | None:
    """The room that a dotted name belongs to; None for the package itself and for what is no module."""
    inside = module.removeprefix("uringloop.").replace(".", "/")
    return next((room for room in ROOMS if inside == room or inside.startswith(f"{room}/")), None)


def in_order(room: str) -> list[str]:
    """The room's modules, each behind those of the room that it uses; raises ValueError if some form a circle."""
    files: dict[str, list[Path]] = {}
    for path in sources(room):
        if path.stem != "__init__":
            files.setdefault(module_of(path), []).append(path)
    uses = {
        name: {used for path in paths for used in imports(path, late=False) if used in files}
        for name, paths in files.items()
    }
    ordered: list[str] = []
    while len(ordered) < len(files):
        free = sorted(name for name in files if name not in ordered and uses[name] <= {name, *ordered})
        if not free:
            raise ValueError(f"these use each other in a circle: {sorted(set(files) - set(ordered))}")
        ordered.append(free[0])
    return ordered


def first_sentence(path: Path) -> str:
    text = path.read_text().lstrip()
    if path.suffix == ".h":
        header = " ".join(line.strip(" */") for line in text.split("*/")[0].splitlines())
    elif text.startswith("#"):
        header = comment(text)
    else:
        header = text.split('"""')[1]
    sentence = re.split(r"(?<=[.])\s+(?=[A-Z`])", " ".join(header.split()), maxsplit=1)[0].rstrip(".")
    name, _, rest = sentence.partition(": ")
    return rest if rest and re.fullmatch(r"\w+", name) else sentence


def comment(text: str) -> str:
    return " ".join(
        line.lstrip("#").strip()
        for line in itertools.takewhile(lambda line: line.startswith("#"), text.splitlines())
    )


def wrapped(name: str, width: int, said: str) -> str:
    return textwrap.fill(said, 118, initial_indent=f"{name:<{width}} ", subsequent_indent=" " * (width + 1))


def lines() -> Iterator[str]:
    for room in ROOMS:
        place = PACKAGE / room
        if not place.is_dir():
            yield wrapped(f"uringloop/{room}.py", 28, first_sentence(place.with_suffix(".py")))
            continue
        own = next(path for path in (place / "__init__.py", place / "__init__.pxd") if path.exists())
        yield wrapped(f"uringloop/{room}/", 28, first_sentence(own))
        for header in sorted(place.glob("*.h")):
            yield wrapped(f"    {header.name}", 24, first_sentence(header))
        for module in in_order(room):
            path = PROJECT / module.replace(".", "/")
            file = next(
                found for kind in (".pyx", ".py", ".pxd") if (found := path.with_suffix(kind)).exists()
            )
            yield wrapped(f"    {file.relative_to(place).as_posix()}", 24, first_sentence(file))


def page() -> str:
    before, rest = PAGE.read_text().split(BEGIN)
    behind = rest.split(END)[1]
    return f"{before}{BEGIN}\n```text\n" + "\n".join(lines()) + f"\n```\n{END}{behind}"


if __name__ == "__main__":
    made = page()
    if "--check" not in sys.argv[1:]:
        PAGE.write_text(made)
    elif made != PAGE.read_text():
        sys.exit("docs/design.md: the table of rooms is not up to date: `make rooms`")
