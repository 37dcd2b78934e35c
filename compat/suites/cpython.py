"""CPython's own `test.test_asyncio`, as installed with the running interpreter."""

from __future__ import annotations

import importlib
import importlib.util
import sys
import unittest
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from compat import loops
from compat.suite import Suite


@dataclass(frozen=True, kw_only=True)
class CPythonSuite(Suite):
    """A process for each of its modules."""

    id_prefix: str = "test.test_asyncio."

    def missing(self) -> str | None:
        if importlib.util.find_spec("test") and importlib.util.find_spec("test.test_asyncio"):
            return None
        version = f"{sys.version_info[0]}.{sys.version_info[1]}"
        return (
            f"this Python {version} has no test.test_asyncio: on Debian and Ubuntu install "
            f"libpython{version}-testsuite, on Fedora python{version}-test; "
            f"a Python built from source, or by pyenv or uv, has it"
        )

    def modules(self) -> list[str]:
        spec = importlib.util.find_spec("test.test_asyncio")
        assert spec is not None and spec.submodule_search_locations
        folder = Path(next(iter(spec.submodule_search_locations)))
        return sorted(path.stem for path in folder.glob("test_*.py"))

    def load(self, module: str, loop: str) -> unittest.TestSuite:
        if loop != loops.STOCK:
            _spare_private_fields(importlib.import_module("test.test_asyncio.utils").TestCase)
        return unittest.defaultTestLoader.loadTestsFromName(self.id_prefix + module)


def _spare_private_fields(test_case: Any) -> None:
    """The suite's fixture `close_loop` looks at a private field of the stock loop: do without it where it is
    missing. Mock loops of the suite itself keep the fixture they were written for.
    """
    stock_close = getattr(test_case, "close_loop", None)
    if stock_close is None:
        return

    def close_loop(loop: Any) -> None:
        if hasattr(loop, "_default_executor"):
            stock_close(loop)
            return
        if not loop.is_closed():
            loop.run_until_complete(loop.shutdown_default_executor())
        loop.close()

    test_case.close_loop = staticmethod(close_loop)
