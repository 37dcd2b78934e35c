"""Some forty small programs do on our loops what they do on asyncio's: what each has seen is compared, entry by entry.
What differs stands below with its reason; a difference that has gone fails, so that its row goes too."""

from __future__ import annotations

import difflib
import json
import re
import subprocess
import sys
from functools import lru_cache
from pathlib import Path

import pytest

from tests.regressions.scenarios import callbacks, sockets, transports
from tests.regressions.scenarios.common import SCENARIOS

RUN = Path(__file__).parent / "scenarios" / "run.py"
NAMES = [*SCENARIOS]
PIECES = {"accept_cancelled_and_accept": "io_refs"}  # what a scenario can't do by that piece's plain path
assert {callbacks, sockets, transports}  # which have filled it

LATER = sys.version_info >= (3, 12)
FAILS = "('handler', 'Exception in callback servers_whose_protocols_fail.<locals>.Raising.connection_made("
NAMED = [] if sys.version_info >= (3, 13) else [f"- {FAILS}", f"+ {FAILS}"]  # by then in debug mode only

# What we do otherwise and keep: the reason, and the lines that differ, each by how it begins.
KEPT: dict[str, tuple[str, list[str]]] = {
    "two_receives_of_one_socket": (
        "asyncio forgets the first of two that wait for one socket; here both are served (docs/migration.md)",
        ["- 'cancelled'", "+ b'def'"],
    ),
    "reader_and_receive_of_one_socket": (
        "asyncio's sock_recv() takes add_reader()'s callback away; here both have their own (docs/migration.md)",
        ["- ('removed', False)", "- ('called', False)", "+ ('removed', True)", "+ ('called', True)"],
    ),
    "write_and_a_peer_that_is_asked_at_once": (
        "what is written leaves when the turn ends (docs/migration.md, When a write leaves)",
        ["- ('arrived', b'ping')", "+ ('arrived', 'BlockingIOError'"],
    ),
    "odd_datagrams": (
        "asyncio fails with an error of its own where it has let go of its loop; here the datagram is dropped",
        [
            "- ('after close', 'AttributeError'",
            "- ('after the end', 'AttributeError'",
            "+ ('after close', None)",
            "+ ('after the end', None)",
        ],
    ),
    "servers_whose_protocols_fail": (
        "transports have other names; and a connection whose factory returned None is closed, for no protocol reads it",
        [
            *NAMED,
            "- (b'', 'open')",
            "+ ('handler', 'Error on transport creation for incoming connection', 'AttributeError')",
            "+ (b'', 'ConnectionResetError')",
        ],
    ),
    "odd_arguments_of_locks_and_queues": (
        "asyncio takes sizes that it fails with later, or that no number of permits can be",
        [
            "- (('Queue', 'x'), 'Queue')",
            "+ (('Queue', 'x'), 'TypeError'",
            "- (('Queue', None), 'Queue')",
            "+ (('Queue', None), 'TypeError'",
            "- (('Semaphore', 1.5), False)",
            "+ (('Semaphore', 1.5), 'ValueError'",
            "- (('Barrier', 1.5), 1.5)",
            "+ (('Barrier', 1.5), 'ValueError'",
        ],
    ),
    "handles_and_wrong_arguments": (
        "a class that is compiled is named with its module, as CPython's own are",
        []
        if LATER
        else [
            "- ('set attribute', 'AttributeError', \"'TimerHandle' object has no attribute 'x'",
            "+ ('set attribute', 'AttributeError', \"'uringloop._core.loop.handle.TimerHandle' object has no",
        ],
    ),
}
if sys.version_info >= (3, 15):
    KEPT["types_of_what_is_written_and_limits"] = (
        "asyncio's writelines() sends what stands before a line that it refuses; here it sends all or nothing",
        ["- (b'abcadez'", "+ (b'abcdez'"],
    )


@lru_cache
def seen_on(which: str) -> dict[str, list[str]]:
    """By every scenario: on asyncio, or on that engine."""
    ended = subprocess.run([sys.executable, str(RUN), which], capture_output=True, text=True, timeout=100)
    sys.stderr.write(ended.stderr)
    assert ended.returncode == 0, ended.stderr
    return dict(json.loads(line) for line in ended.stdout.splitlines())


def words_left_out(seen: list[str]) -> list[str]:
    """asyncio's later versions say the same in other words than the oldest one, which is followed."""
    return [re.sub(r"(, '\w*Error'), (['\"]).*\2\)$", r"\1)", line) for line in seen] if LATER else seen


def differences(name: str, engine: str) -> list[str]:
    compared = difflib.ndiff(words_left_out(seen_on("asyncio")[name]), words_left_out(seen_on(engine)[name]))
    return [line for line in compared if line.startswith(("- ", "+ "))]


@pytest.mark.engines("uring", "epoll")  # the fake engine takes its time, and gives it to nobody
@pytest.mark.parametrize(
    "name",
    [pytest.param(n, marks=pytest.mark.relies_on(PIECES[n])) if n in PIECES else n for n in NAMES],
)
def test_each_scenario_has_the_outcome_of_asyncio(engine: str, name: str) -> None:
    found = differences(name, engine)
    reason, expected = KEPT.get(name, ("", []))
    assert len(found) == len(expected), "\n".join([reason, *found])
    for line in expected:
        assert any(each.startswith(line) for each in found), f"gone: {line} ({reason})"


def test_no_scenario_fails_on_asyncio() -> None:
    """No scenario fails by itself."""
    failed = {
        name: seen for name, seen in seen_on("asyncio").items() if seen and seen[0].startswith("raised ")
    }
    assert not failed
    assert [*seen_on("asyncio")] == NAMES


def test_each_kept_difference_names_a_scenario() -> None:
    assert {*KEPT} <= set(NAMES)
