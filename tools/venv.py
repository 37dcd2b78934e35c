"""Makes a virtual environment and keeps it at what pyproject.toml asks for.

    python3 tools/venv.py .venv-cpython-313 build-system test liburing?
    python3 tools/venv.py where     which environment is this interpreter's, and the tag of its builds

A name is an optional-dependencies group of pyproject.toml, or build-system for what compiles the project.
With a question mark, what can't be had here (no wheel for this Python or C library) is named and left out.
Takes a few milliseconds when nothing has changed.
"""

import hashlib
import json
import os
import re
import subprocess
import sys
import sysconfig
from pathlib import Path

try:
    import tomllib
except ImportError:
    sys.exit(
        f"uringloop needs Python 3.11 or later, this is {sys.version.split()[0]}: choose one with PYTHON="
    )

PROJECT = Path(__file__).resolve().parent.parent
BASE = os.path.realpath(sys.executable)
TAG = f"{sys.implementation.cache_tag}{sys.abiflags}"


def installed_in(venv: Path) -> dict[str, str]:
    """What the environment holds, by group, and its interpreter under "python"; empty if unusable."""
    try:
        installed: dict[str, str] = json.loads((venv / "installed.json").read_text())
        return installed if os.access(venv / "bin/python", os.X_OK) else {}
    except (OSError, ValueError):
        return {}


def where() -> Path:
    """`.venv` for the python3 of PATH, `.venv-<tag>` for others, or where another's python3 came first."""
    show = "import os, sys; print(os.path.realpath(sys.executable))"
    try:
        default = subprocess.run(["python3", "-c", show], capture_output=True, text=True).stdout.strip()
    except OSError:  # there is none
        default = ""
    ours = installed_in(Path(".venv")).get("python", BASE) == BASE
    return Path(".venv" if default == BASE and ours else f".venv-{TAG}")


def requirements(group: str, groups: dict[str, list[str]]) -> list[str]:
    """The group's requirements; a group may hold others as `uringloop-asyncio[name]`."""
    found: list[str] = []
    for requirement in groups[group]:
        inner = re.fullmatch(r"uringloop-asyncio\[([\w,]+)\]", requirement)
        if inner:
            for name in inner[1].split(","):
                found += requirements(name, groups)
        else:
            found.append(requirement)
    return found


def pip(venv: Path, *arguments: str) -> str:
    """Runs pip; empty, or the reason of its failure."""
    command = [str(venv / "bin/python"), "-m", "pip", "-qq", "--disable-pip-version-check", *arguments]
    run = subprocess.run(command, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    return run.stderr.strip() or f"status {run.returncode}" if run.returncode else ""


def create(venv: Path) -> None:
    print(f"{venv}: a new environment of Python {sys.version.split()[0]}", flush=True)
    subprocess.run([sys.executable, "-m", "venv", "--clear", str(venv)], check=True)
    site = next((venv / "lib").glob("python*/site-packages"))
    (site / "uringloop-source.pth").write_text(f"{PROJECT}\n")  # `import uringloop` works from everywhere


def age_declarations(venv: Path) -> None:
    """What a Cython just installed declares is else newer than all generated C, which is then made again."""
    for path in venv.glob("lib/python*/site-packages/Cython/Includes/**/*.pxd"):
        os.utime(path, (0, 0))


def install_optional(venv: Path, wanted: list[str]) -> None:
    """All at once, else one by one; wheels only, so that no other language's compiler is ever called for."""
    command = ["install", "--upgrade", "--only-binary=:all:"]
    if pip(venv, *command, *wanted):
        for requirement in wanted:
            if reason := pip(venv, *command, requirement):
                print(f"{venv}: left out: {reason.splitlines()[-1]}", flush=True)


def main(venv: Path, names: list[str]) -> None:
    pyproject = tomllib.loads((PROJECT / "pyproject.toml").read_text())
    groups = pyproject["project"]["optional-dependencies"]
    groups["build-system"] = pyproject["build-system"]["requires"]
    if "build-system" in names and not Path(sysconfig.get_path("include"), "Python.h").exists():
        sys.exit(
            f"uringloop is compiled, and the headers of this Python {sys.version.split()[0]} are missing: "
            "install them (python3-dev, python3-devel), or choose another Python with PYTHON="
        )
    stamp = venv / "installed.json"
    installed = installed_in(venv)
    if installed.get("python") != BASE:
        create(venv)
        installed = {"python": BASE}
        stamp.write_text(json.dumps(installed))
    for name in names:
        wanted = requirements(name.rstrip("?"), groups)
        digest = hashlib.sha256("\n".join(wanted).encode()).hexdigest()
        if installed.get(name.rstrip("?")) == digest:
            continue
        print(f"{venv}: installing {', '.join(wanted)}", flush=True)
        if name.endswith("?"):
            install_optional(venv, wanted)
        elif reason := pip(venv, "install", "--upgrade", "--prefer-binary", *wanted):
            sys.exit(f"{venv}: the {name!r} requirements could not be installed:\n{reason}")
        if name == "build-system":
            age_declarations(venv)
        installed[name.rstrip("?")] = digest
        stamp.write_text(json.dumps(installed))


if __name__ == "__main__":
    if sys.argv[1:] == ["where"]:
        print(where(), TAG)
    else:
        main(Path(sys.argv[1]), sys.argv[2:])
