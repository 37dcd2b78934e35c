"""uvloop's own test suite, from its source archive, with a stand-in for its package over the loop under test.

Every body runs twice: as `Test...UV`/`Test_UV_...`, which the suite wrote for uvloop, and as `...AIO`, which
it wrote for stock asyncio and which leaves out or loosens what asyncio does not promise. Both run on the
candidate, and both run on stock asyncio as the control.
"""

from __future__ import annotations

import importlib
import os
import sys
import unittest
from pathlib import Path

from compat import archives

TITLE = "uvloop's test suite"
VERSION = "0.23.0"
ID_PREFIX = "tests."
TEST_SECONDS = 40.0
ISOLATED = False
REQUIREMENTS = ("aiohttp==3.14.5", "psutil==7.2.2", "pyOpenSSL==26.4.0", "setuptools==80.9.0")

_HERE = Path(__file__).resolve().parent.parent


def missing() -> str | None:
    return None


def modules() -> list[str]:
    return sorted(path.stem for path in (archives.fetch("uvloop", VERSION) / "tests").glob("test_*.py"))


def load(module: str, loop: str) -> unittest.TestSuite:
    source = archives.fetch("uvloop", VERSION)
    sys.path.insert(0, str(source))
    if loop != "uvloop":
        shim = str(_HERE / "shims")
        sys.path.insert(0, shim)
        os.environ["COMPAT_UVLOOP_SOURCE"] = str(source)
        # the suite starts programs that import uvloop and asyncio too
        os.environ["COMPAT_LOOP"] = loop
        os.environ["PYTHONPATH"] = os.pathsep.join([str(_HERE / "inject"), shim])
    else:
        # the real package: not the unbuilt sources beside the tests
        sys.path.pop(0)
        importlib.import_module("uvloop")
        sys.path.insert(0, str(source))
    importlib.import_module("tests")
    return unittest.defaultTestLoader.loadTestsFromModule(importlib.import_module(ID_PREFIX + module))
