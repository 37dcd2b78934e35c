"""The table of reported defects names tests that exist, and every test that stands for a report."""

import ast
import re
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2]
TABLE = PROJECT / "tests" / "regressions" / "README.md"
NAMED = set(re.findall(r"`([\w/]+\.py)::(\w+)`", TABLE.read_text()))


def functions(path: Path) -> set[str]:
    tree = ast.parse(path.read_text())
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}


def test_every_test_that_is_named_exists() -> None:
    assert NAMED
    wrong = [f"{file}::{name}" for file, name in sorted(NAMED) if name not in functions(PROJECT / file)]
    assert not wrong


def test_every_test_of_a_report_or_a_mechanism_is_named() -> None:
    files = [*TABLE.parent.glob("test_other_loops_*.py"), TABLE.parent / "test_mechanisms.py"]
    there = {
        (str(path.relative_to(PROJECT)), name)
        for path in files
        for name in functions(path)
        if name.startswith("test_")
    }
    assert there - NAMED == set()


def test_every_row_has_a_test_or_says_why_not() -> None:
    rows = [line for line in TABLE.read_text().splitlines() if line.startswith("| ")]
    assert all("::" in row or "no test" in row or row.rstrip(" |").endswith("test") for row in rows)


def test_links_lead_somewhere() -> None:
    for link in re.findall(r"\]\(([^)]+)\)", TABLE.read_text()):
        assert (TABLE.parent / link).exists(), link
