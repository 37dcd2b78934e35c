"""Every check of asyncio's behaviour, on our loop: what `make compat` runs beside stock asyncio and other loops."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from typing import Any

import pytest

import uringloop
from compat.behaviours import AREAS
from compat.catalogue import SUITES
from compat.suite import CheckSuite, run_check

SUITE = SUITES["behaviours"]
assert isinstance(SUITE, CheckSuite)

ALONE = """
import asyncio, importlib, sys
import uringloop
from compat.suite import run_check

asyncio.SelectorEventLoop = uringloop.new_event_loop
area, name = sys.argv[1:]
run_check(getattr(importlib.import_module(f"compat.behaviours.{area}"), name))
"""

pytestmark = [
    # of the fake engine, that delivers byte by byte, they would ask too many megabytes
    pytest.mark.engines("uring", "epoll"),
    # a check that has seen what it is about leaves its connections to the end of its loop
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]


def parameters(alone: bool) -> list[Any]:
    return [
        pytest.param(
            area,
            function,
            id=f"{area}.{function.__name__}",
            marks=pytest.mark.skipif(
                sys.version_info < function.about.since,
                reason=f"asyncio promises it since Python {'.'.join(map(str, function.about.since))}",
            ),
        )
        for area in AREAS
        for function in SUITE.checks(area)
        if function.about.alone is alone
    ]


@pytest.mark.parametrize(("area", "function"), parameters(alone=False))
def test_check(area: str, function: Callable[[], Any], engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asyncio, "SelectorEventLoop", uringloop.new_event_loop)
    run_check(function)


@pytest.mark.parametrize(("area", "function"), parameters(alone=True))
def test_check_in_a_process_of_its_own(
    area: str, function: Callable[[], Any], engine: str, program: Any
) -> None:
    program(ALONE, area, function.__name__)
