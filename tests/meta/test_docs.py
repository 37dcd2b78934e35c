"""The pages say what is there: links lead somewhere, commands exist, code blocks are Python."""

import ast
import re
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parents[2]
PATTERNS = ("*.md", "docs/**/*.md", "newsfragments/README.md")
PAGES = sorted(page for pattern in PATTERNS for page in PROJECT.glob(pattern))
TARGETS = set(re.findall(r"^([a-z-]+):", (PROJECT / "Makefile").read_text(), re.MULTILINE))

on_every_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(PROJECT)))


@on_every_page
def test_links_lead_somewhere(page: Path) -> None:
    for link in re.findall(r"\]\(([^)#\s]+)", page.read_text()):
        assert "://" in link or (page.parent / link).exists(), link


@on_every_page
def test_make_targets_exist(page: Path) -> None:
    text = page.read_text()
    named = set(re.findall(r"(?:`|^)make ([a-z][a-z-]*)", text, re.MULTILINE))
    assert named <= TARGETS, named - TARGETS


@on_every_page
def test_code_blocks_are_python(page: Path) -> None:
    for block in re.findall(r"^```python\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL):
        compile(block, str(page), "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
