"""CPython's own `test.test_asyncio`, as installed with the running interpreter."""

from __future__ import annotations

import importlib
import importlib.util
import sys
import unittest
from pathlib import Path
from typing import Any

from compat import loops

TITLE = "CPython's test.test_asyncio"
ID_PREFIX = "test.test_asyncio."
TEST_SECONDS = 40.0
ISOLATED = False
REQUIREMENTS: tuple[str, ...] = ()


def missing() -> str | None:
    """How to get the suite, when this interpreter has none."""
    if importlib.util.find_spec("test") and importlib.util.find_spec("test.test_asyncio"):
        return None
    version = f"{sys.version_info[0]}.{sys.version_info[1]}"
    return (
        f"this Python {version} has no test.test_asyncio: on Debian and Ubuntu install "
        f"libpython{version}-testsuite, on Fedora python{version}-test; "
        f"a Python built from source, or by pyenv or uv, has it"
    )


def modules() -> list[str]:
    spec = importlib.util.find_spec("test.test_asyncio")
    assert spec is not None and spec.submodule_search_locations
    folder = Path(next(iter(spec.submodule_search_locations)))
    return sorted(path.stem for path in folder.glob("test_*.py"))


def _close_loop(loop: Any) -> None:
    """The suite's own fixture of this name, without its look at a private field of the stock loop."""
    if not loop.is_closed():
        loop.run_until_complete(loop.shutdown_default_executor())
    loop.close()


def load(module: str, loop: str) -> unittest.TestSuite:
    if loop != loops.STOCK:
        utils = importlib.import_module("test.test_asyncio.utils")
        if hasattr(utils.TestCase, "close_loop"):
            stock_close = utils.TestCase.close_loop

            def close_loop(tested: Any) -> None:
                # mock loops of the suite itself keep the fixture they were written for
                (stock_close if hasattr(tested, "_default_executor") else _close_loop)(tested)

            utils.TestCase.close_loop = staticmethod(close_loop)
    return unittest.defaultTestLoader.loadTestsFromName(ID_PREFIX + module)
