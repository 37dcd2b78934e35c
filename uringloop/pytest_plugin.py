"""The pytest plugin: `--uringloop` makes uringloop the default event loop of the tests. It serves pytest-asyncio, anyio
and unittest's IsolatedAsyncioTestCase. A test that names its own loop factory keeps that."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("uringloop")
    group.addoption("--uringloop", action="store_true", help="run asyncio tests on uringloop")


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--uringloop"):
        from uringloop.policy import install

        install()


def pytest_report_header(config: pytest.Config) -> str | None:
    if not config.getoption("--uringloop"):
        return None
    from uringloop.loop import choose_engine
    from uringloop.version import __version__

    return f"asyncio tests: on uringloop {__version__}, engine {choose_engine(None)[0]}"
