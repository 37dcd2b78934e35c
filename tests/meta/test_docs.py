"""The pages say what is there: links lead somewhere, commands exist, code stands in an example that the tests run."""

import re
import textwrap
from pathlib import Path

import pytest

from uringloop.__main__ import COMMANDS
from uringloop.inspect.doctor import FEATURES

PROJECT = Path(__file__).resolve().parents[2]
PATTERNS = ("*.md", "docs/**/*.md", "newsfragments/README.md", "benchmarks/README.md")
PAGES = sorted(page for pattern in PATTERNS for page in PROJECT.glob(pattern))
MADE = ("reference/", "examples.md", "contributing.md", "changelog.md", "security.md", "benchmark.md")
TARGETS = set(re.findall(r"^([a-z-]+):", (PROJECT / "Makefile").read_text(), re.MULTILINE))
EXAMPLES = sorted(PROJECT.glob("examples/*.py"))

on_every_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(PROJECT)))


@on_every_page
def test_links_lead_somewhere(page: Path) -> None:
    for link in re.findall(r"\]\(([^)#\s]+)", page.read_text()):
        made = page.parent.name == "docs" and link.startswith(MADE)  # of the site; `make docs` looks there
        assert "://" in link or made or (page.parent / link).exists(), link


@on_every_page
def test_make_targets_exist(page: Path) -> None:
    text = page.read_text()
    named = set(re.findall(r"(?:`|^)make ([a-z][a-z-]*)", text, re.MULTILINE))
    assert named <= TARGETS, named - TARGETS


def test_each_feature_of_the_kernel_has_its_row() -> None:
    """As `doctor` names it, with the same kernel."""
    rows = re.findall(
        r"^\| (\w+) \| (\d\.\d+) \|", (PROJECT / "docs/kernel_notes.md").read_text(), re.MULTILINE
    )
    assert dict(rows) == {name: since for name, (since, _) in FEATURES.items()}


@on_every_page
def test_commands_exist(page: Path) -> None:
    named = set(re.findall(r"(?:python -m |`)uringloop ([a-z]+)", page.read_text()))
    assert named <= set(COMMANDS), named - set(COMMANDS)


def stands_in(block: str, text: str) -> bool:
    """Whether the lines of the block follow each other in the text, as they are or all indented alike."""
    wanted, lines = textwrap.dedent(block).splitlines(), text.splitlines()
    starts = [at for at, line in enumerate(lines) if line.strip() == wanted[0].strip()]
    cuts = ("\n".join(lines[at : at + len(wanted)]) for at in starts)
    return any(textwrap.dedent(cut).splitlines() == wanted for cut in cuts)


@on_every_page
def test_code_stands_in_an_example(page: Path) -> None:
    for name, block in re.findall(
        r"^```python([^\n]*)\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL
    ):
        found = re.fullmatch(r' title="(examples/\w+\.py)"', name)
        assert found, f'a block of Python says where it stands: ```python title="examples/...", not {name!r}'
        assert stands_in(block, (PROJECT / found[1]).read_text()), f"not in {found[1]}:\n{block}"


@pytest.mark.parametrize(
    ("block", "found"),
    [("a\nb\n", True), ("    a\n    b\n", True), ("b\nc\n", False), ("a\n    b\n", False)],
)
def test_stands_in_finds_whole_blocks_of_lines(block: str, found: bool) -> None:
    assert stands_in(block, "if x:\n    a\n    b\n") is found


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.name)
def test_each_example_is_one_idea(example: Path) -> None:
    assert len(example.read_text().splitlines()) < 60


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.name)
def test_each_example_is_run_by_a_test(example: Path) -> None:
    tests = [*PROJECT.glob("tests/examples/test_*.py"), *PROJECT.glob("tests/integrations/*.py")]
    stem = re.compile(rf"\b{example.stem}\b")
    assert any(stem.search(test.read_text()) for test in [*tests, PROJECT / "docs/integrations.md"])
