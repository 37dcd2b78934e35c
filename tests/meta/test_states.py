"""The table of states in docs/design.md is true: each method's docstring names its transition."""

import re
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parents[2]
TABLE = (PROJECT / "docs" / "design.md").read_text().partition("\n| transition | ")[2].partition("\n\n")[0]
ROWS = re.findall(r"^\| ([^|`]+ -> [^|`]+) \| `(\w+)\.(\w+)` \|", TABLE, re.MULTILINE)
CORE = [path.read_text() for path in sorted((PROJECT / "uringloop" / "_core").rglob("*.pyx"))]
METHOD = re.compile(r'\n    cdef [^\n(]*?(\w+)\([^"]*"""([^"]*)"""')


def class_text(name: str) -> str:
    """The code of the class, without those after it."""
    (text,) = [
        found[0]
        for source in CORE
        if (found := re.findall(rf"^cdef class {name}\b.*?(?=^\S)", f"{source}\n#", re.MULTILINE | re.DOTALL))
    ]
    return str(text)


def transitions(name: str) -> set[tuple[str, str]]:
    return {
        (" ".join(part.split()), method)
        for method, docstring in METHOD.findall(class_text(name))
        for part in re.split(r"[:,.]", docstring)
        if "->" in part
    }


@pytest.mark.parametrize("owner", sorted({owner for _, owner, _ in ROWS}))
def test_the_table_has_each_transition(owner: str) -> None:
    assert transitions(owner) == {(after, method) for after, of, method in ROWS if of == owner}


def test_the_table_was_found() -> None:
    assert len(ROWS) == TABLE.count("\n| ")
