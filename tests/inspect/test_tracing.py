from __future__ import annotations

import asyncio
import json
import socket
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from uringloop.inspect import trace
from uringloop.inspect.tracing import Tracing


def events(path: Path, phase: str = "") -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(path.read_text())["traceEvents"]
    return [event for event in found if phase in ("", event["ph"])]


async def work() -> None:
    await asyncio.sleep(0.001)
    loop = asyncio.get_running_loop()
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.setblocking(False)
        reading = loop.create_task(loop.sock_recv(ours, 1), name="reads")
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        theirs.send(b"x")
        await reading


def turn(loop: Any) -> None:
    loop.call_soon(loop.stop)
    loop.run_forever()


def test_a_trace_shows_what_happened_when(loop: Any, tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    with trace(path):
        loop.run_until_complete(work())
    spans = events(path, "X")
    assert {span["cat"] for span in spans} == {"turn", "sleep", "callback"}
    turns = [(span["ts"], span["ts"] + span["dur"]) for span in spans if span["cat"] == "turn"]
    assert turns == sorted(turns)
    for span in spans:
        if span["cat"] == "callback" and span["ts"] >= turns[0][0]:
            end = span["ts"] + span["dur"]
            assert any(start <= span["ts"] and end <= stop for start, stop in turns), span
    assert any("work" in span["name"] for span in spans)
    begun = {event["id"]: event for event in events(path, "b")}
    ended = {event["id"]: event for event in events(path, "e")}
    assert begun and set(ended) <= set(begun)
    assert all(event["ts"] >= begun[which]["ts"] for which, event in ended.items())
    assert {event["args"]["name"] for event in events(path, "M")} >= {f"loop {loop._number}"}
    assert all({"pid", "tid"} <= set(event) for event in events(path))


def test_the_file_keeps_to_the_trace_event_format(loop: Any, tmp_path: Path) -> None:
    """What Perfetto and chrome://tracing ask of each kind of event."""

    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is no JSON")

    path = tmp_path / "trace.json"
    with trace(path):
        loop.run_until_complete(work())
    document = json.loads(path.read_text(), parse_constant=refuse)
    assert set(document) <= {"traceEvents", "displayTimeUnit", "otherData", "metadata"}
    assert document.get("displayTimeUnit", "ms") in ("ms", "ns")
    opened: dict[tuple[str, str], float] = {}
    for event in document["traceEvents"]:
        needed: dict[str, Any] = {"name": str, "ph": str, "pid": int, "tid": int, **NEEDED[event["ph"]]}
        for key, kind in needed.items():
            assert isinstance(event[key], kind) and not isinstance(event[key], bool), (key, event)
        assert set(event) <= {*needed, "ts", "args", "cat"}, event
        assert isinstance(event.get("args", {}), dict)
        assert event.get("ts", 0) >= 0 and event.get("dur", 0) >= 0
        if event["ph"] == "M":
            assert event["name"] in METADATA and METADATA[event["name"]] in event["args"]
        elif event["ph"] == "b":
            opened[event["cat"], event["id"]] = event["ts"]
        elif event["ph"] == "e":  # what is still in the kernel at the end has none
            assert opened.pop((event["cat"], event["id"])) <= event["ts"]


NUMBER = (int, float)
NEEDED: dict[str, dict[str, Any]] = {
    "X": {"ts": NUMBER, "dur": NUMBER, "cat": str},
    "b": {"ts": NUMBER, "cat": str, "id": (str, int)},
    "e": {"ts": NUMBER, "cat": str, "id": (str, int)},
    "M": {"args": dict},
}
METADATA = {
    "process_name": "name",
    "thread_name": "name",
    "process_labels": "labels",
    "process_sort_index": "sort_index",
    "thread_sort_index": "sort_index",
}


def test_a_trace_keeps_a_bounded_number_of_records(loop: Any, tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    with trace(path, loop, room=10) as recorder:
        for _ in range(100):
            loop.call_soon(id, 1)
        turn(loop)
    assert len(events(path, "X")) == 10
    assert recorder.lost >= 90
    assert json.loads(path.read_text())["otherData"]["records_lost"] == recorder.lost
    assert recorder.events == len(events(path))


def test_loops_made_meanwhile_are_there_and_dropped_ones_too(
    new_loop: Callable[..., Any], tmp_path: Path
) -> None:
    path = tmp_path / "trace.json"
    with trace(path):
        loop = new_loop()
        number = loop._number
        turn(loop)
        loop.close()
        del loop
    assert number in {event["tid"] for event in events(path, "X")}


def test_a_trace_of_one_loop_excludes_others(new_loop: Callable[..., Any], tmp_path: Path) -> None:
    one, other = new_loop(), new_loop()
    path = tmp_path / "trace.json"
    with trace(path, one):
        turn(one)
        turn(other)
    assert {event["tid"] for event in events(path, "X")} == {one._number}


def test_the_callback_that_ends_the_trace_is_in_it(loop: Any, tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    recorder = trace(path, loop)

    def end_it() -> None:
        thread = threading.Thread(target=recorder.finish)
        thread.start()
        thread.join()
        loop.stop()

    recorder.start()
    loop.call_soon(end_it)
    loop.run_forever()
    assert "end_it" in events(path, "X")[-1]["name"]


def test_one_trace_at_a_time(new_loop: Callable[..., Any], tmp_path: Path) -> None:
    first, second = new_loop(), new_loop()
    with trace(tmp_path / "a", second):
        for wanted in (second, None):
            with pytest.raises(RuntimeError, match="traced already"):
                trace(tmp_path / "b", wanted).start()
        with trace(tmp_path / "b", first):  # what the refused one had begun it gave back
            turn(first)
    assert events(tmp_path / "b", "X")
    with trace(tmp_path / "c"):
        turn(second)
    assert events(tmp_path / "c", "X")


def test_an_exception_inside_the_trace_propagates(loop: Any, tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    with pytest.raises(KeyboardInterrupt):
        with trace(path):
            turn(loop)
            raise KeyboardInterrupt
    assert events(path, "X")


def test_a_full_disk_is_an_error_at_the_end(loop: Any) -> None:
    with pytest.raises(OSError, match="No space left on device: '/dev/full'"):
        with trace("/dev/full"):
            turn(loop)
    with trace("/dev/null"):
        turn(loop)  # what failed is over


def test_a_file_that_can_not_be_opened_is_one_at_once(loop: Any, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        trace(tmp_path / "nowhere" / "trace.json").start()
    assert loop.monitor is None


def test_a_room_below_one_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="room"):
        Tracing(room=0)
    with pytest.raises(ValueError, match="room"):
        trace(tmp_path / "trace.json", room=-1).start()


def test_a_running_trace_has_no_document() -> None:
    with Tracing() as tracing:
        with pytest.raises(RuntimeError, match="not ended"):
            tracing.document()
    assert tracing.document()["traceEvents"]


def test_a_closed_loop_s_trace_is_empty(loop: Any, tmp_path: Path) -> None:
    loop.close()
    with trace(tmp_path / "trace.json", loop):
        pass
    assert events(tmp_path / "trace.json", "X") == []


@pytest.mark.parametrize("end", ["", "sys.exit(3)", "raise SystemExit"])
def test_the_end_of_the_program_writes_it(
    engine: str, program: Callable[..., Any], tmp_path: Path, end: str
) -> None:
    path = tmp_path / "trace.json"
    code = f"""
import sys, uringloop
from uringloop.inspect import trace
trace(sys.argv[1]).start()
loop = uringloop.new_event_loop()
loop.call_soon(loop.stop)
loop.run_forever()
loop.close()
{end}
"""
    program(code, str(path), check=False)
    assert events(path, "X")


def test_the_end_of_a_forked_child_does_not_write_the_trace(
    engine: str, program: Callable[..., Any], tmp_path: Path
) -> None:
    path = tmp_path / "trace.json"
    code = """
import os, sys, warnings
warnings.simplefilter("ignore")
import uringloop
from uringloop.inspect import trace
with trace(sys.argv[1]) as recorder:
    loop = uringloop.new_event_loop()
    loop.call_soon(loop.stop)
    loop.run_forever()
    loop.close()
    if os.fork() == 0:
        assert recorder.finish() == (False, None)
        sys.exit(0)
    os.wait()
    assert os.path.getsize(sys.argv[1]) == 0
"""
    program(code, str(path))
    assert events(path, "X")
