"""What `make counts` compares, and the table that it keeps."""

import json

import pytest

from tools.counts import io_paths, table  # noqa: F401
from tools.counts.__main__ import TABLE
from tools.counts.paths import PATHS
from tools.counts.table import Allowance, Row, Table, compare, lines, parse

# What was asked for, and under which names it is counted.
WANTED = {
    "call_soon": ["call_soon", "call_soon, many a turn"],
    "sleep(0)": ["sleep(0)"],
    "timer": ["timer", "timer, cancelled"],
    "threadsafe call": ["threadsafe call"],
    "1 KB echo by protocol": ["echo by protocol"],
    "1 KB echo by streams": ["echo by streams"],
    "connect-accept-close": ["connect-accept-close"],
    "add_reader": ["add_reader", "add_reader and remove_reader"],
    "datagram": ["datagram"],
    "sock_*": ["sock_sendall and sock_recv", "sock_connect and sock_accept"],
    "Lock hand-off": ["Lock hand-off", "Lock hand-off to another loop"],
    "job": ["job"],
    "file read": ["file read"],
    "TLS record": ["TLS record"],
}


def small_table(**allowed: float) -> Table:
    counts = {"job": {"uring": 1000, "epoll": 2000}}
    allowances = [Allowance("job", engine, percent, "a repair") for engine, percent in allowed.items()]
    return Table("0" * 40, "the first", {"python": "cpython 3.11"}, counts, allowances)


def compared(now: float, **allowed: float) -> Row:
    base = {"job": {"uring": 1000.0}}
    return compare(base, {"job": {"uring": now}}, small_table(**allowed))[0]


@pytest.mark.parametrize(
    ("now", "fails"), [(900, False), (1010, False), (1020, False), (1021, True), (1030, True)]
)
def test_more_than_two_percent_fail(now: float, fails: bool) -> None:
    row = compared(now)
    assert row.fails is fails
    assert ("WORSE" in lines([row])[-1]) is fails


def test_a_row_says_path_base_change_and_percent() -> None:
    assert str(compared(1030)) == "job on uring: 1000 instructions at the base, 1030 now, +3.0 %"
    assert "where +5.0 % stand in the table" in str(compared(1080, uring=5.0))


@pytest.mark.parametrize(("now", "fails"), [(1050, False), (1071, False), (1072, True)])
def test_a_path_is_measured_against_the_tables_allowance(now: float, fails: bool) -> None:
    assert compared(now, uring=5.0).fails is fails


def test_a_path_that_became_faster_is_held_to_that() -> None:
    assert not compared(915, uring=-10.0).fails
    assert compared(930, uring=-10.0).fails


def test_an_allowance_is_for_one_engine() -> None:
    assert compared(1030, epoll=5.0).fails


def test_paths_missing_in_the_base_are_not_compared() -> None:
    assert compare({}, {"job": {"uring": 1.0}}, None) == []
    assert compare({"job": {"epoll": 1.0}}, {"job": {"uring": 1.0}}, None) == []


def test_a_change_of_the_table_says_why() -> None:
    changed = small_table()
    with pytest.raises(ValueError, match="reason"):
        changed.allow(compared(1030), " ")
    changed.allow(compared(1030), "a job is told of its cancellation")
    assert changed.allowed("job", "uring") == 3.0
    assert changed.instructions["job"]["uring"] == 1000, "the first number stays"
    changed.allow(compared(1010), "and does without the copy")
    assert changed.allowed("job", "uring") == 1.0


def test_the_table_is_written_as_it_is_read() -> None:
    for one in (small_table(), small_table(uring=3.0, epoll=1.5)):
        assert parse(one.text()) == one


@pytest.mark.parametrize(
    "wrong",
    [
        {"commit": "0"},
        {"allowances": [{"path": "job", "engine": "uring", "percent": 3.0, "why": ""}]},
        {"allowances": [{"path": "job", "engine": "uring", "percent": 3.0}]},
        {"allowances": [{"path": "call_soon", "engine": "uring", "percent": 3.0, "why": "a repair"}]},
    ],
)
def test_a_wrong_table_is_refused(wrong: dict[str, object]) -> None:
    fields = {} if "commit" in wrong else json.loads(small_table().text())
    with pytest.raises(ValueError):
        parse(json.dumps(fields | wrong))


def test_each_path_is_in_the_table_for_both_engines() -> None:
    committed = table.read(TABLE)
    assert set(committed.instructions) == set(PATHS)
    assert all(set(counts) == {"uring", "epoll"} for counts in committed.instructions.values())
    assert len(committed.commit) == 40 and committed.why
    assert set(committed.tools) == {"machine", "python", "compiler", "cython", "libc", "valgrind"}


@pytest.mark.parametrize("wanted", WANTED)
def test_the_paths_named_on_the_command_line_are_counted(wanted: str) -> None:
    assert set(WANTED[wanted]) <= set(table.read(TABLE).instructions)
