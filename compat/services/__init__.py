"""Servers that a suite needs: started for it, on the loopback, with data that is thrown away."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

from compat.services import postgresql, redis

_SERVICES: dict[str, Callable[[], contextlib.AbstractContextManager[dict[str, str]]]] = {
    "postgresql": postgresql.running,
    "redis": redis.running,
}
_MISSING: dict[str, Callable[[], str | None]] = {"postgresql": postgresql.missing, "redis": redis.missing}


def missing(names: tuple[str, ...]) -> str | None:
    """Why one of these can't be started here."""
    return next((reason for name in names if (reason := _MISSING[name]()) is not None), None)


@contextlib.contextmanager
def running(names: tuple[str, ...]) -> Iterator[dict[str, str]]:
    """All of these servers; the environment variables that say where they are."""
    with contextlib.ExitStack() as stack:
        variables: dict[str, str] = {}
        for name in names:
            variables |= stack.enter_context(_SERVICES[name]())
        yield variables
