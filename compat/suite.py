"""What every suite offers: to the parent its modules, to a test process the tests of one of them."""

from __future__ import annotations

import importlib
import inspect
import sys
import unittest
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from compat import services


@dataclass(frozen=True, kw_only=True)
class Suite:
    """A set of tests that can be run on a loop. The kinds of suites derive from it."""

    title: str
    version: str = ""
    # packages for an environment of its own, pinned; none: it runs in the environment that runs us
    requirements: tuple[str, ...] = ()
    # a test that takes longer than this hangs
    test_seconds: float = 40.0
    # a process for every test
    isolated: bool = False
    # its tests share a server: one process at a time
    serial: bool = False
    # a part of every test's name that says nothing
    id_prefix: str = ""
    # servers that have to run beside it, by their names in services/
    services: tuple[str, ...] = ()

    def missing(self) -> str | None:
        """Why it can't run here, and what to do about it."""
        return services.missing(self.services)

    def modules(self) -> list[str]:
        """The parts it is run by, a process each."""
        raise NotImplementedError

    def load(self, module: str, loop: str) -> unittest.TestSuite:
        """In a test process: the tests of one part."""
        raise NotImplementedError


@dataclass(frozen=True, kw_only=True)
class CheckSuite(Suite):
    """Small functions of our own, marked by `@check`, in the areas (modules) of a package."""

    package: str
    areas: tuple[str, ...]
    test_seconds: float = 60.0
    isolated: bool = True

    def modules(self) -> list[str]:
        return list(self.areas)

    def checks(self, area: str) -> list[Any]:
        """The checks of an area, in the order they are written in."""
        module = importlib.import_module(f"{self.package}.{area}")
        return [
            value
            for value in vars(module).values()
            if hasattr(value, "about") and getattr(value, "__module__", "") == module.__name__
        ]

    def load(self, module: str, loop: str) -> unittest.TestSuite:
        return unittest.TestSuite(_Check(module, function) for function in self.checks(module))


class _Check(unittest.TestCase):
    """One check as a test case."""

    def __init__(self, area: str, function: Callable[[], Any]) -> None:
        super().__init__("runTest")
        self.area = area
        self.function: Any = function

    def id(self) -> str:
        return f"{self.area}.{self.function.__name__}"

    def runTest(self) -> None:
        since = self.function.about.since
        if sys.version_info < since:
            self.skipTest(f"asyncio promises it since Python {'.'.join(map(str, since))}")
        run_check(self.function)


def run_check(function: Callable[[], Any]) -> None:
    """Run one check on the loop that `asyncio.SelectorEventLoop` makes by now."""
    import asyncio

    if not inspect.iscoroutinefunction(function):
        function()
        return
    with asyncio.Runner(loop_factory=asyncio.SelectorEventLoop) as runner:
        runner.run(function())
