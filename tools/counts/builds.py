"""The builds that are counted: of a commit, in build/counts/<commit>-<tools>, made once for these tools; and of the
working tree, which is the release build beside its sources."""

from __future__ import annotations

import fcntl
import hashlib
import importlib.metadata
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2]
BUILDS = PROJECT / "build/counts"
NEEDED = ("setup.py", "pyproject.toml", "README.md", "LICENSE", "MANIFEST.in", "uringloop")
MADE_BY = re.compile(rb"GCC: \([^\0]*|clang version [^\0]*|_cython_\d\w+")


def output_of(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True, cwd=PROJECT).stdout.strip()


def compiler() -> str:
    return os.environ.get("CC", "cc")


def tools() -> dict[str, str]:
    """What the numbers depend on beside the sources."""
    return {
        "machine": platform.machine(),
        "python": f"{sys.implementation.name} {platform.python_version()}{sys.abiflags}",
        "compiler": output_of(*compiler().split(), "--version").splitlines()[0],
        "cython": importlib.metadata.version("cython"),
        "libc": " ".join(platform.libc_ver()),
        "valgrind": output_of("valgrind", "--version"),
    }


def commit_of(name: str) -> str:
    """The whole name of a commit of this clone; empty: it is not there."""
    found = subprocess.run(
        ["git", "rev-parse", "--verify", "--quiet", f"{name}^{{commit}}"],
        capture_output=True, text=True, cwd=PROJECT,
    )  # fmt: skip
    return found.stdout.strip()


def folder_of(name: str) -> Path:
    """The folder for what is counted: for these tools and this interpreter. The names of all of them are of one length,
    and so are the interpreter's strings: memory looks the same for two builds that are the same."""
    made_with = hashlib.sha256(json.dumps([tools(), sys.executable]).encode()).hexdigest()[:8]
    return BUILDS / f"{name[:12]:-<12}-{made_with}"


def stage(source: Path, folder: Path) -> None:
    """Copies the package as this interpreter sees it, and nothing else: what a folder lists is in memory, too."""
    shutil.rmtree(folder, ignore_errors=True)
    ours = f".{sys.implementation.cache_tag}{sys.abiflags}-"
    for path in sorted((source / "uringloop").rglob("*")):
        if path.suffix == ".py" or (path.suffix == ".so" and ours in path.name):
            target = folder / path.relative_to(source)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(path, target)


def build(commit: str) -> Path:
    """The folder of a release build of it."""
    folder = folder_of(commit)
    BUILDS.mkdir(parents=True, exist_ok=True)
    with open(BUILDS / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            print(f"building {commit[:12]}", flush=True)
            with tempfile.TemporaryDirectory(dir=BUILDS) as name:
                sources, staged = Path(name, "sources"), Path(name, "staged")
                compile_commit(commit, sources)
                stage(sources, staged)
                staged.rename(folder)
    return folder


def compile_commit(commit: str, folder: Path) -> None:
    folder.mkdir()
    archive = subprocess.run(
        ["git", "archive", commit, *NEEDED], check=True, capture_output=True, cwd=PROJECT
    )
    subprocess.run(["tar", "-x"], input=archive.stdout, check=True, cwd=folder)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("URINGLOOP_")}
    done = subprocess.run(
        [sys.executable, "setup.py", "--quiet", "build_ext", "--inplace"],
        cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
    if done.returncode:
        sys.exit(f"{commit[:12]} does not build:\n{done.stdout[-2000:]}")


def working_tree() -> Path:
    """The folder of what `make build` made."""
    folder = folder_of("working-tree")
    stage(PROJECT, folder)
    return folder


def made_by(folder: Path) -> set[bytes]:
    """What compiled the modules for this interpreter, as they say themselves."""
    found: set[bytes] = set()
    for module in (folder / "uringloop").rglob(f"*.{sys.implementation.cache_tag}{sys.abiflags}-*.so"):
        found |= {
            name.split(b".")[0] if b"_cython" in name else name
            for name in MADE_BY.findall(module.read_bytes())
        }
    return found


def window() -> Path:
    """The library that begins and ends what is counted."""
    source = Path(__file__).with_name("window.c")
    library = BUILDS / f"window-{hashlib.sha256(source.read_bytes()).hexdigest()[:8]}.so"
    if not library.exists():
        partial = library.with_suffix(f".{os.getpid()}")
        options = "-shared -fPIC -O2 -fno-builtin-malloc -fno-builtin-calloc".split()
        command = [*compiler().split(), *options, "-o", str(partial), str(source)]
        subprocess.run(command, check=True)
        partial.rename(library)
    return library
