"""Makes a virtual environment and keeps it at what pyproject.toml asks for.

    python3 tools/venv.py .venv-cp313 test dev liburing?

A name is an optional-dependencies group of pyproject.toml. With a question mark, what can't be had here (no wheel for this
Python or this C library) is named and left out. Does nothing, in a few milliseconds, when nothing has changed.
"""

import hashlib
import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent


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


def pip(venv: Path, *arguments: str) -> bool:
    command = [str(venv / "bin/python"), "-m", "pip", "--quiet", "--disable-pip-version-check"]
    return subprocess.run([*command, *arguments]).returncode == 0


def create(venv: Path) -> None:
    print(f"{venv}: a new environment of Python {sys.version.split()[0]}", flush=True)
    subprocess.run([sys.executable, "-m", "venv", "--clear", str(venv)], check=True)
    site = next((venv / "lib").glob("python*/site-packages"))
    (site / "uringloop-source.pth").write_text(f"{PROJECT}\n")  # `import uringloop` works from everywhere
    pip(venv, "install", "--upgrade", "pip")


def install_optional(venv: Path, name: str, wanted: list[str]) -> None:
    """All at once, else one by one; wheels only, so that no other language's compiler is ever called for."""
    options = ["install", "--only-binary=:all:"]
    if pip(venv, *options, "--no-input", "-qq", *wanted):
        return
    for requirement in wanted:
        if not pip(venv, *options, "-qq", requirement):
            print(f"{venv}: {name}: no wheel of {requirement!r} for this Python: left out", flush=True)


def main(venv: Path, names: list[str]) -> None:
    groups = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    stamp = venv / "installed.json"
    base = os.path.realpath(sys.executable)
    try:
        installed = json.loads(stamp.read_text())
        usable = installed.pop("python") == base and os.access(venv / "bin/python", os.X_OK)
    except (OSError, ValueError, KeyError):
        installed, usable = {}, False
    if not usable:
        create(venv)
        installed = {}
    for name in names:
        wanted = requirements(name.rstrip("?"), groups)
        digest = hashlib.sha256("\n".join(wanted).encode()).hexdigest()
        if installed.get(name.rstrip("?")) == digest:
            continue
        print(f"{venv}: installing {', '.join(wanted)}", flush=True)
        if name.endswith("?"):
            install_optional(venv, name.rstrip("?"), wanted)
        elif not pip(venv, "install", "--upgrade", *wanted):
            sys.exit(f"{venv}: pip could not install the {name!r} requirements of pyproject.toml")
        installed[name.rstrip("?")] = digest
        stamp.write_text(json.dumps({"python": base, **installed}))
    stamp.write_text(json.dumps({"python": base, **installed}))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
