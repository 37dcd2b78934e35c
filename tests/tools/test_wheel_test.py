"""The distribution: a source archive made where there is no git, a wheel made of that archive alone, installed in an
empty environment, where tools/wheel_test.py is run. What was compiled for this test run is not compiled once more;
`make dist` does, which takes a minute or two."""

import ast
import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from uringloop import _compiled
from uringloop._core.lifetime.counters import DEBUG_BUILD

PROJECT = Path(__file__).resolve().parents[2]
COMPILED = PROJECT / f"build/lib-{sys.implementation.cache_tag}{sys.abiflags}"
NOT_SOURCES = shutil.ignore_patterns(
    ".*", "build", "dist", "site", "*.egg-info", "*.so", "__pycache__", "results"
)
SOURCES = ("uringloop", "tests", "examples", "docs", "benchmarks", "compat", "tools", "newsfragments")

pytestmark = [
    pytest.mark.skipif(DEBUG_BUILD, reason="what is distributed is a release build"),
    pytest.mark.skipif(not COMPILED.exists(), reason="not a source folder where `make build` was run"),
]


def backend(hook: str, folder: Path) -> Path:
    """Has setuptools make what `pip` and `build` would have it make, by the environment of this test run."""
    code = f"import sys; from setuptools import build_meta; print(build_meta.{hook}(sys.argv[1]))"
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    command = [sys.executable, "-c", code, str(folder.parent)]
    run = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=100)
    assert run.returncode == 0, run.stderr
    return folder.parent / run.stdout.splitlines()[-1]


def give_compiled(folder: Path) -> None:
    """As if it had been built there: newer than the sources, what was compiled newer than what it was compiled from."""
    for made in (*PROJECT.glob("build/cython-*"), COMPILED):
        shutil.copytree(made, folder / "build" / made.name, copy_function=shutil.copyfile)


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    copy = tmp_path_factory.mktemp("sources") / "copy"
    shutil.copytree(PROJECT, copy, ignore=NOT_SOURCES)
    give_compiled(copy)
    return backend("build_sdist", copy)


@pytest.fixture(scope="module")
def unpacked(archive: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("unpacked")
    with tarfile.open(archive) as file:
        file.extractall(folder, filter="data")
    (only,) = folder.iterdir()
    return only


@pytest.fixture(scope="module")
def wheel(unpacked: Path) -> Path:
    give_compiled(unpacked)
    return backend("build_wheel", unpacked)


def files(folder: Path) -> Iterator[str]:
    for name in SOURCES:
        for path in (folder / name).rglob("*"):
            if path.is_file() and path.suffix not in (".so", ".pyc"):
                yield str(path.relative_to(folder))


def test_the_archive_has_all_sources(archive: Path, unpacked: Path) -> None:
    assert set(files(archive.parent / "copy")) == set(files(unpacked))
    for name in (
        "LICENSE",
        "README.md",
        "CHANGELOG.md",
        "SECURITY.md",
        "Makefile",
        "mkdocs.yml",
        "setup.py",
        "pyproject.toml",
    ):
        assert (unpacked / name).read_bytes() == (PROJECT / name).read_bytes()


def debug_builds_have() -> set[str]:
    """What has no place in a release, the simulated kernel for one, by setup.py."""
    named = re.search(
        r"^DEBUG_ONLY = (\{.*?\})", (PROJECT / "setup.py").read_text(), re.MULTILINE | re.DOTALL
    )
    assert named is not None
    return {name.replace(".", "/") for name in ast.literal_eval(named[1])}


def test_the_wheel_has_what_is_needed_and_no_more(wheel: Path) -> None:
    held = {Path(name) for name in zipfile.ZipFile(wheel).namelist()}
    assert {path.parts[0] for path in held if "dist-info" not in path.parts[0]} == {"uringloop"}
    assert [str(path).partition(".")[0] for path in held if path.suffix == ".so"] == ["uringloop/_compiled"]
    sources = {str(path.relative_to(PROJECT).with_suffix("")) for path in PROJECT.glob("uringloop/**/*.pyx")}
    debug_only = debug_builds_have()
    compiled = {name.replace(".", "/") for name in _compiled.names()}
    assert compiled - {"uringloop/_cython"} == sources - debug_only
    assert not [path for path in held if str(path).partition(".")[0] in debug_only]
    typed = {str(path.relative_to(PROJECT)) for path in PROJECT.glob("uringloop/**/*.pyi")}
    assert {*typed, "uringloop/py.typed"} - {f"{name}.pyi" for name in debug_only} <= set(map(str, held))
    python = {str(path.relative_to(PROJECT)) for path in PROJECT.glob("uringloop/**/*.py")}
    assert python <= set(map(str, held))


def test_the_wheel_works_in_an_empty_environment(wheel: Path, tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path], check=True, timeout=60)
    python = tmp_path / "bin/python"
    pip = [sys.executable, "-m", "pip", "--python", python, "--disable-pip-version-check", "-qq"]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    subprocess.run([*pip, "install", "--no-index", wheel], env=environment, check=True, timeout=100)
    shutil.copy(PROJECT / "tools/wheel_test.py", tmp_path)
    command = [python, "-P", tmp_path / "wheel_test.py"]
    run = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60)
    assert run.returncode == 0 and run.stdout.startswith("works: "), run.stderr
