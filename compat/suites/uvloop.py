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
from dataclasses import dataclass
from pathlib import Path

from compat import archives
from compat.suite import Suite

_HERE = Path(__file__).resolve().parent.parent


@dataclass(frozen=True, kw_only=True)
class UvloopSuite(Suite):
    """A process for each of its modules."""

    id_prefix: str = "tests."

    def modules(self) -> list[str]:
        return sorted(
            path.stem for path in (archives.fetch("uvloop", self.version) / "tests").glob("test_*.py")
        )

    def load(self, module: str, loop: str) -> unittest.TestSuite:
        source = archives.fetch("uvloop", self.version)
        if loop == "uvloop":
            # the real package: not the unbuilt sources beside the tests
            importlib.import_module("uvloop")
            sys.path.insert(0, str(source))
        else:
            shim = str(_HERE / "shims")
            sys.path[:0] = [shim, str(source)]
            os.environ["COMPAT_UVLOOP_SOURCE"] = str(source)
            # the suite starts programs that import uvloop and asyncio too
            os.environ["PYTHONPATH"] = os.pathsep.join([str(_HERE / "inject"), shim])
        importlib.import_module("tests")
        return unittest.defaultTestLoader.loadTestsFromModule(
            importlib.import_module(self.id_prefix + module)
        )
