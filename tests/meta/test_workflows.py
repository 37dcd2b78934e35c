"""The workflows of the hosted CI run targets that exist, on the Pythons that the package says it supports."""

import re
import tomllib
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parents[2]
WORKFLOWS = sorted((PROJECT / ".github/workflows").glob("*.yml"))


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_a_workflow_runs_targets_that_exist(path: Path) -> None:
    targets = set(re.findall(r"^([a-z-]+):", (PROJECT / "Makefile").read_text(), re.M))
    for target in re.findall(r"\bmake ([a-z-]+)", path.read_text()):
        assert target in targets, f"no target {target}"


def test_the_tests_run_on_each_python_that_the_package_supports() -> None:
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]
    supported = set(re.findall(r"Python :: (3\.\d+)'", str(project["classifiers"])))
    workflow = (PROJECT / ".github/workflows/tests.yml").read_text()
    tested = re.search(r"python: (\[.*\])", workflow)
    assert tested is not None
    versions = set(re.findall(r'"([\d.]+t?)"', tested[1]))
    assert {version for version in versions if not version.endswith("t")} == supported
    assert {version for version in versions if version.endswith("t")} == {"3.14t", "3.15t"}


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_a_workflow_may_do_no_more_than_it_must(path: Path) -> None:
    """Without `permissions`, the token of a run may write to the repository."""
    assert "\npermissions:\n  contents: read\n" in path.read_text()
