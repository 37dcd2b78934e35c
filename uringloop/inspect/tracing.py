"""Tracing: a record of each turn, sleep, callback and operation of loops, in a file for Perfetto (ui.perfetto.dev) or
Chrome (chrome://tracing). The memory is bounded: it keeps the last `room` records of each loop."""

from __future__ import annotations

import atexit
import json
import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import IO, Any

from uringloop._core.loop.monitor import OPERATIONS, TIMES, LoopMonitor, name_of
from uringloop.inspect.observers import Observer

ROOM = 100_000

Record = tuple[str, int, int, int, int, str, "str | None"]


class Tracing:
    """Records one loop, or with None all present and future loops, from now on until `end`."""

    def __init__(self, loop: Any = None, room: int = ROOM) -> None:
        if room < 1:
            raise ValueError(f"room must be at least 1 record, not {room}")
        self.room = room
        self.began = time.monotonic_ns()
        self._watches: list[tuple[int, LoopMonitor]] = []
        self._events: list[dict[str, Any]] | None = None
        self._lost = 0
        self._guard = threading.Lock()
        try:
            self._observer = Observer(TIMES | OPERATIONS, loop, self._begin)
        except BaseException:
            for _, watch in self._watches:
                watch.take_trace()
            raise

    def __enter__(self) -> Tracing:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.end()

    def _begin(self, loop: Any, watch: LoopMonitor) -> None:
        watch.start_trace(self.room)
        self._watches.append((loop._number, watch))

    def end(self) -> None:
        """End the recording; may be called more than once."""
        with self._guard:
            if self._events is not None:
                return
            self._observer.end()
            self._events = [_named("process_name", 0, Path(sys.argv[0] or "python").name)]
            for number, watch in self._watches:
                unfinished = list(_unfinished(watch))
                records, lost = watch.take_trace()
                self._lost += lost
                self._events.append(_named("thread_name", number, f"loop {number}"))
                self._events += _events(number, [*records, *unfinished])

    def document(self) -> dict[str, Any]:
        """The content of the trace file; only after `end`."""
        if self._events is None:
            raise RuntimeError("the trace has not ended")
        return {
            "traceEvents": self._events,
            "displayTimeUnit": "ms",
            "otherData": {"records_lost": self._lost, "began_us": self.began / 1e3},
        }


def _unfinished(watch: LoopMonitor) -> Iterator[Record]:
    """Records for the callback that still runs and the operations still in the kernel."""
    now = watch.running()
    if now is not None:
        _, since, called, kind = now
        name, detail = name_of(called, kind)
        yield "callback", since, time.monotonic_ns() - since, 0, 0, name, detail
    for since, kind_of_op, fd in watch.operations():
        if since:
            yield "operation", since, -1, fd, 0, kind_of_op, None


def _named(what: str, thread: int, name: str) -> dict[str, Any]:
    return {"ph": "M", "name": what, "pid": os.getpid(), "tid": thread, "args": {"name": name}}


def _events(thread: int, records: list[Record]) -> Iterator[dict[str, Any]]:
    """Make the trace's events. A loop has one track for its turns and sleeps, with the callbacks inside the turns.
    Operations overlap, so they have tracks of their own."""
    at = {"pid": os.getpid(), "tid": thread}
    for serial, (kind, start, took, number, ran, name, detail) in enumerate(
        sorted(records, key=lambda record: (record[1], -record[2]))
    ):
        if kind == "operation":
            common = {"cat": "operation", "name": name, "id": f"{thread}.{serial}", **at}
            yield {"ph": "b", "ts": start / 1e3, "args": {"fd": number}, **common}
            if took >= 0:
                yield {"ph": "e", "ts": (start + took) / 1e3, **common}
            continue
        arguments: dict[str, Any] = {}
        if kind == "turn":
            arguments = {"turn": number, "callbacks": ran}
        elif detail is not None:
            arguments = {"detail": detail}
        yield {
            "ph": "X",
            "cat": kind,
            "name": name,
            "ts": start / 1e3,
            "dur": took / 1e3,
            "args": arguments,
            **at,
        }


def write_document(document: dict[str, Any], file: IO[str]) -> None:
    """Write the trace as JSON, one event per line."""
    rest = {name: value for name, value in document.items() if name != "traceEvents"}
    file.write('{"traceEvents": [\n')
    for at, event in enumerate(document["traceEvents"]):
        file.write((",\n" if at else "") + json.dumps(event))
    file.write("\n], " + json.dumps(rest)[1:] + "\n")
    file.flush()


class trace:  # lower case, because it reads like a function: `with trace(path):`
    """`with uringloop.inspect.trace(path):` records the loops during the block and writes the trace at its end.

    Records `loop`, or with None all present and future loops, and keeps the last `room` records of each. If the program
    ends inside the block, the trace is written at exit. Raises OSError at once if the file can't be opened, and at the
    end if it can't be written."""

    def __init__(self, path: str | os.PathLike[str], loop: Any = None, *, room: int = ROOM) -> None:
        self._path, self._loop, self._room = path, loop, room
        self._guard = threading.Lock()
        self._file: IO[str] | None = None
        self._error: OSError | None = None
        self._pid = 0
        self.events = 0  # written
        self.lost = 0  # records dropped because later ones needed their room

    def start(self) -> None:
        self._file = open(self._path, "w", encoding="utf-8")  # noqa: SIM115
        try:
            self._tracing = Tracing(self._loop, self._room)
        except BaseException:
            self._file.close()
            raise
        self._pid = os.getpid()
        atexit.register(self._at_exit)

    def __enter__(self) -> trace:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._at_exit()

    def _at_exit(self) -> None:
        first, failed = self.finish()
        if first and failed is not None:
            raise failed

    def finish(self) -> tuple[bool, OSError | None]:
        """End the recording and write the file. Return whether this was the first call, and the error if the file could
        not be written. Does nothing in a child forked during the trace: the end of the child doesn't end the trace."""
        atexit.unregister(self._at_exit)
        with self._guard:
            if self._file is None or self._pid != os.getpid():
                return False, self._error
            self._tracing.end()
            document = self._tracing.document()
            self.events, self.lost = len(document["traceEvents"]), document["otherData"]["records_lost"]
            file, self._file = self._file, None
            try:
                write_document(document, file)
            except OSError as error:
                self._error = OSError(error.errno, f"{error.strerror}: {os.fspath(self._path)!r}")
            finally:
                with suppress(OSError):  # close() fails to flush for the same reason as the first error
                    file.close()
            return True, self._error
