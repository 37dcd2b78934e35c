"""Makes the virtual environments of suites and applications: packages of pinned versions.

Each stands in build/, away from the environment that runs us, and is made again when its pins change.
"""

from __future__ import annotations

import fcntl
import hashlib
import sys
import sysconfig
import venv
from pathlib import Path

from compat.pip import pip
from compat.places import BUILD


def python(name: str, requirements: tuple[str, ...]) -> Path:
    """The interpreter of the environment `name` with these packages, for the running Python."""
    tag = sysconfig.get_config_var("SOABI") or sys.implementation.cache_tag
    folder = BUILD / f"venv-{name}-{tag}"
    interpreter = folder / "bin" / "python"
    stamp = folder / "pins"
    pins = hashlib.sha256("\n".join((sys.version, *requirements)).encode()).hexdigest()
    BUILD.mkdir(parents=True, exist_ok=True)
    with open(BUILD / f".lock-{name}-{tag}", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not stamp.exists() or stamp.read_text(encoding="utf-8") != pins:
            print(f"making an environment for {name}: {' '.join(requirements)}", file=sys.stderr)
            venv.EnvBuilder(clear=True, with_pip=True, symlinks=True).create(folder)
            pip(interpreter, "install", *requirements)
            stamp.write_text(pins, encoding="utf-8")
    return interpreter
