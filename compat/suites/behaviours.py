"""Our own checks of asyncio's promises (compat/behaviours), each in a process of its own."""

from __future__ import annotations

import asyncio
import importlib
import inspect
import sys
import unittest
from typing import Any

from compat.behaviours import AREAS

TITLE = "asyncio's behaviour, check by check"
ID_PREFIX = ""
TEST_SECONDS = 10.0
ISOLATED = True
REQUIREMENTS: tuple[str, ...] = ()


class _Case(unittest.TestCase):
    """One check as a test case."""

    def __init__(self, area: str, function: Any) -> None:
        super().__init__("runTest")
        self.area = area
        self.function = function

    def id(self) -> str:
        return f"{self.area}.{self.function.__name__}"

    def runTest(self) -> None:
        since = self.function.about.since
        if sys.version_info < since:
            self.skipTest(f"asyncio promises it since Python {'.'.join(map(str, since))}")
        if not inspect.iscoroutinefunction(self.function):
            self.function()
            return
        with asyncio.Runner(loop_factory=asyncio.SelectorEventLoop) as runner:
            runner.run(self.function())


def missing() -> str | None:
    return None


def modules() -> list[str]:
    return list(AREAS)


def checks(area: str) -> list[Any]:
    """The checks of an area, in the order they are written in."""
    module = importlib.import_module(f"compat.behaviours.{area}")
    return [
        value
        for value in vars(module).values()
        if hasattr(value, "about") and getattr(value, "__module__", "") == module.__name__
    ]


def load(module: str, loop: str) -> unittest.TestSuite:
    return unittest.TestSuite(_Case(module, function) for function in checks(module))
