"""What callgrind writes is read right."""

import pytest

from tools.counts.callgrind import NotCounted, functions_of, read_dumps

DUMP = """\
# callgrind format
version: 1
pid: 1
desc: Trigger: Client Request: {label}

positions: line
events: Ir
fn=(1) outer
0 {outer}
cfn=(2) inner
calls=7 0
0 7000
+3 10

fn=(2)
0 {inner}
fn=(3) inner'2
0 5
fn=(1)
cfn=(3)
calls=1 0
* 5
totals: {total}
"""


def dump(label: str, outer: int, inner: int, total: int) -> str:
    return DUMP.format(label=label, outer=outer, inner=inner, total=total)


def test_functions_are_counted_without_their_callees() -> None:
    assert functions_of(dump("job x1", 100, 40, 155)) == {"outer": 110, "inner": 45}


def test_a_path_is_the_difference_of_its_windows_an_operation() -> None:
    dumps = [
        dump("job x2", 300, 240, 1500),
        "desc: Trigger: Program termination\n",
        dump("job x1", 100, 40, 500),
    ]
    (counted,) = read_dumps(dumps, {"job": 100})
    assert (counted.path, counted.instructions) == ("job", 10.0)
    assert counted.functions == {"outer": 2.0, "inner": 2.0}


def test_names_have_commas_and_blanks() -> None:
    dumps = [dump(f"call_soon, many a turn x{factor}", 0, 0, factor * 64) for factor in (1, 2)]
    assert [one.path for one in read_dumps(dumps, {"call_soon, many a turn": 64})] == [
        "call_soon, many a turn"
    ]


def test_a_path_that_failed_is_not_counted() -> None:
    assert read_dumps([dump("job x1", 1, 1, 500)], {}) == []


def test_a_dump_without_a_total_is_an_error() -> None:
    dumps = [dump(f"job x{factor}", 1, 1, 500).replace("totals: 500\n", "") for factor in (1, 2)]
    with pytest.raises(NotCounted, match="job"):
        read_dumps(dumps, {"job": 1})
