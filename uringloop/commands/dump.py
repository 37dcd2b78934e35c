"""uringloop dump: shows where each loop, thread and task of a running process is now, and which task waits for which,
and says what is stuck and at which line. It prints no value of a variable. Start the process with URINGLOOP_INSPECT=1;
from Python 3.14 on, dump opens an inspector in any process whose main thread runs Python code. Exit code 0: nothing is
stuck; 3: something is; 1: the process can't be looked at, and a message says why; 2: wrong arguments."""

from __future__ import annotations

import argparse
import json
import sys
from typing import Any

from uringloop.commands.report import report
from uringloop.errors import InspectionFailed
from uringloop.inspect.client import NoAnswer
from uringloop.inspect.reach import reach
from uringloop.inspect.stack_handler import read_stacks
from uringloop.inspect.verdicts import verdicts

HELP = "why a running process hangs: dump PID"
STUCK = 3  # the exit code


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="for programs")
    parser.add_argument(
        "--wait",
        type=float,
        default=1.0,
        metavar="SECONDS",
        help="a loop that runs no callback for so long is stuck",
    )
    parser.add_argument(
        "--timeout", type=float, default=5.0, metavar="SECONDS", help="to wait for the answer of the process"
    )
    parser.add_argument("pid", type=int, metavar="PID", help="the number of the process")


def main(options: argparse.Namespace) -> int:
    for name in ("wait", "timeout"):
        if not 0 < getattr(options, name) < 86400:
            print(
                f"uringloop dump: --{name} must be more than 0 seconds, and less than a day", file=sys.stderr
            )
            return 2
    try:
        found = look(options.pid, options.wait, options.timeout)
    except InspectionFailed as error:
        print(f"uringloop dump: {error}", file=sys.stderr)
        return 1
    found["verdicts"] = verdicts(found)
    print(json.dumps(found, indent=2) if options.json else "\n".join(report(found)))
    return STUCK if any(each["certain"] for each in found["verdicts"]) else 0


def look(pid: int, seconds: float, timeout: float) -> dict[str, Any]:
    try:
        with reach(pid, timeout) as client:
            found = client.dump(seconds, 2 * seconds + timeout)
    except NoAnswer:
        found = None
    if found is not None:
        return found
    threads = read_stacks(pid, timeout)
    if threads is None:
        raise InspectionFailed(
            f"process {pid} does not answer: its inspector's thread gets no turn within {timeout:g} s, and no handler "
            f"writes the stacks. Try `py-spy dump --native --pid {pid}`, or gdb"
        )
    return {
        "format": 1,
        "pid": pid,
        "how": "signal",
        "loops": [],
        "threads": threads,
        "tasks": [],
        "tasks_left_out": 0,
        "primitives": [],
        "still": False,
    }
