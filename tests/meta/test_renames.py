"""docs/renames.md is true: each new name is defined where the page says, and the old one is defined there no longer."""

import re
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parents[2]
SOURCES = [
    path
    for kind in ("pyx", "pxd", "pyi", "py")
    for path in sorted((PROJECT / "uringloop").rglob(f"*.{kind}"))
]
ROW = re.compile(r"^\| `([^`]+)` \| `([^`]+)` \| ([^|]+) \| [^|]+ \|$", re.MULTILINE)
ROWS = ROW.findall((PROJECT / "docs" / "renames.md").read_text())


def class_lines(name: str) -> list[tuple[Path, str]]:
    """What stands in the class, in whichever files declare or define it."""
    found = []
    begins = re.compile(rf"^(?:cdef )?class {name}\b")
    for path in SOURCES:
        within = False
        for line in path.read_text().splitlines():
            if line and not line[0].isspace() and line[0] != ")":
                within = begins.match(line) is not None
            elif within:
                found.append((path, line))
    return found


def module_lines(stem: str) -> list[tuple[Path, str]]:
    """What the module has outside of classes and functions; a constant may stand in an enum."""
    lines = [(path, line) for path in SOURCES if path.stem == stem for line in path.read_text().splitlines()]
    return [(path, line) for path, line in lines if re.match(r"\S|    [A-Z_]+ = ", line)]


def defines(path: Path, line: str, name: str) -> bool:
    patterns = [
        rf"\s*(?:async def|def|cdef|cpdef)\b[^(=#]*\b{name}\(",
        rf"(?:cdef )?(?:class|struct) {name}\b",
        rf"[^#]*\bself\.{name}\b[^=(]*=(?!=)",
        rf"(?:    )?{name}(?:: [^=]*)? = ",
    ]
    if path.suffix == ".pxd":  # in a .pyx it is a local variable
        patterns.append(rf"\s*cdef\s[^(=#]*\b{name}\b")
    if path.suffix == ".pyi":
        patterns.append(rf"\s*{name}: ")
    return any(re.match(pattern, line) for pattern in patterns)


def signatures(where: str) -> list[str]:
    owner, _, function = where.partition(".")
    return [
        line for _, line in class_lines(owner) if re.match(rf"\s*(?:def|cdef)\b[^(]*\b{function}\(", line)
    ]


def test_the_page_has_rows() -> None:
    assert len(ROWS) == (PROJECT / "docs" / "renames.md").read_text().count("\n| `")


@pytest.mark.parametrize(("old", "new", "where"), ROWS, ids=[f"{where}-{new}" for _, new, where in ROWS])
def test_the_new_name_is_defined_and_the_old_is_not(old: str, new: str, where: str) -> None:
    if where == "file":
        names = {str(path.relative_to(PROJECT / "uringloop").with_suffix("")) for path in SOURCES}
        assert new in names
        assert old not in names
    elif "." in where:
        found = "\n".join(signatures(where))
        assert re.search(rf"\b{new}\b", found)
        assert not re.search(rf"\b{old}\b", found)
    else:
        lines = (
            module_lines(where.removeprefix("module ")) if where.startswith("module ") else class_lines(where)
        )
        assert any(defines(path, line, new) for path, line in lines), f"{where} does not define {new}"
        still = [f"{path.name}: {line.strip()}" for path, line in lines if defines(path, line, old)]
        assert not still, f"{where} still defines {old}: {still}"
