"""uringloop trace: records turns, callbacks and operations of a program, or of a process that was started with
URINGLOOP_INSPECT=1, to a file for https://ui.perfetto.dev or chrome://tracing. Records until the program ends, Ctrl-C
or --seconds, and keeps the last --records of each loop. Exit code: the program's; 1: no trace; 2: wrong arguments."""

from __future__ import annotations

import argparse
import signal
import sys
import threading
from types import FrameType

from uringloop.commands import run
from uringloop.commands.top import process_number
from uringloop.errors import InspectionFailed
from uringloop.inspect.client import Client
from uringloop.inspect.tracing import ROOM, trace, write_document
from uringloop.redirects import redirect

HELP = "record a program for Perfetto: trace [-o FILE] script.py ..., or PID"


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-o", dest="output", default="trace.json", metavar="FILE", help="default: trace.json")
    parser.add_argument("--seconds", type=float, default=0.0, metavar="N", help="end the trace after so long")
    parser.add_argument(
        "--records", type=int, default=ROOM, metavar="N", help=f"to keep, of each loop ({ROOM})"
    )
    run.arguments(parser)


def split(arguments: list[str]) -> tuple[list[str], list[str]]:
    return run.split(arguments, ("-o", "--seconds", "--records"))


def main(options: argparse.Namespace) -> int:
    if options.records < 1 or not 0 <= options.seconds <= threading.TIMEOUT_MAX:
        return complain("--records must be at least 1, --seconds not below 0", 2)
    pid = process_number(options)
    if pid is not None:
        return trace_process(pid, options)
    redirect(options.keep_uvloop)
    if wrong := run.complaint(options, "trace"):
        print(wrong, file=sys.stderr)
        return 2
    return trace_program(options)


def complain(what: object, code: int = 1) -> int:
    print(f"uringloop trace: {what}", file=sys.stderr)
    return code


def tell(path: str, events: int, lost: int) -> None:
    missing = f"; {lost} records before them found no room (--records)" if lost else ""
    print(
        f"uringloop trace: {events} events in {path}, for https://ui.perfetto.dev{missing}", file=sys.stderr
    )


def trace_process(pid: int, options: argparse.Namespace) -> int:
    try:
        with Client(pid) as client, open(options.output, "w", encoding="utf-8") as file:
            before = signal.signal(signal.SIGINT, lambda number, frame: client.stop())
            try:
                print("uringloop trace: Ctrl-C ends it", file=sys.stderr, flush=True)
                document = client.trace(options.seconds, options.records)
            finally:
                signal.signal(signal.SIGINT, before)
            write_document(document, file)
    except (InspectionFailed, OSError) as error:
        return complain(error)
    tell(options.output, len(document["traceEvents"]), document["otherData"]["records_lost"])
    return 0


def trace_program(options: argparse.Namespace) -> int:
    recorder = trace(options.output, room=options.records)
    try:
        recorder.start()
    except OSError as error:
        return complain(error)
    if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, terminated)  # the program may replace it with its own
    if options.seconds:
        timer = threading.Timer(options.seconds, finish, (recorder, options.output))
        timer.daemon = True
        timer.start()
    failed = True
    try:
        code: object = run.execute(options)
    except SystemExit as ended:
        code = ended.code
    finally:
        failed = finish(recorder, options.output) is not None
    if code is None or isinstance(code, int):
        return code or int(failed)
    raise SystemExit(code)  # the program's exit message


def finish(recorder: trace, path: str) -> OSError | None:
    """Write the trace, unless that was done already. May be called from any thread."""
    first, error = recorder.finish()
    if first and error is not None:
        complain(error)
    elif first:
        tell(path, recorder.events, recorder.lost)
    return error


def terminated(number: int, frame: FrameType | None) -> None:
    raise SystemExit(128 + number)
