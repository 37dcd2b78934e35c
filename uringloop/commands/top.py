"""uringloop top: shows what the loops of a running process do: turns, busy fraction, callbacks, operations in the
kernel, the slowest callbacks, tasks. The process must have been started with URINGLOOP_INSPECT=1, or call
uringloop.inspect.serve(); a script is started that way. Exit code 0: shown; 1: the process can't be inspected, or has
ended; 2: wrong arguments; for a script that has ended, the script's own."""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from dataclasses import asdict
from typing import IO

from uringloop.commands import run
from uringloop.commands.screen import lines, picture
from uringloop.errors import InspectionFailed
from uringloop.inspect.client import Client, NoInspector
from uringloop.inspect.rates import rates
from uringloop.inspect.reach import without_loops
from uringloop.inspect.server import folders, socket_name

HELP = "look at the loops of a running process: top PID, or top script.py ..."
WITHOUT_RICH = (
    "uringloop top: the live view needs rich: pip install 'uringloop-asyncio[top]'; --once and --json do not"
)


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--once", action="store_true", help="look for one interval, as plain text")
    parser.add_argument("--json", action="store_true", help="for programs: an object a line")
    parser.add_argument("--interval", type=float, default=1.0, metavar="SECONDS", help="between two looks")
    run.arguments(parser)


def split(arguments: list[str]) -> tuple[list[str], list[str]]:
    return run.split(arguments, ("--interval",))


def main(options: argparse.Namespace) -> int:
    live = not options.once and not options.json and sys.stdout.isatty()
    if not 0 < options.interval < 86400:
        return complain("--interval must be more than 0 seconds, and less than a day")
    if live and importlib.util.find_spec("rich") is None:
        print(WITHOUT_RICH, file=sys.stderr)
        return 2
    pid = process_number(options)
    if pid is None and (wrong := run.complaint(options, "top", imports=False)):
        print(wrong, file=sys.stderr)
        return 2
    try:
        if pid is not None:
            with client_of(pid) as client:
                return look(client, options, live, None)
        return look_at_script(options, live)
    except InspectionFailed as error:
        print(f"uringloop top: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 0
    except BrokenPipeError:  # `| head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return 0


def complain(what: str) -> int:
    print(f"uringloop top: {what}", file=sys.stderr)
    return 2


def process_number(options: argparse.Namespace) -> int | None:
    """The process ID, if the only argument is a number and no script has that name."""
    given = options.program
    alone = options.module is None and len(given) == 1 and given[0].isascii() and given[0].isdigit()
    return int(given[0]) if alone and not os.path.exists(given[0]) else None


def client_of(pid: int) -> Client:
    """A client of the process's inspector. InspectionFailed also says whether the process has loops of ours at all."""
    try:
        return Client(pid)
    except NoInspector as error:
        raise InspectionFailed(without_loops(pid) or str(error)) from None


def look(client: Client, options: argparse.Namespace, live: bool, output: IO[str] | None) -> int:
    """Show the loops until the process ends or Ctrl-C; with --once for one interval."""
    if live:
        return look_live(client, options, output)
    before = client.snapshot()
    while True:
        time.sleep(options.interval)
        after = client.snapshot()
        found = rates(before, after)
        if options.json:
            for loop in after["loops"]:
                rate = found.get(loop["number"])
                loop["rates"] = None if rate is None else asdict(rate)
            print(json.dumps(after), flush=True)
        else:
            print("\n".join(lines(after, found)), end="\n" if options.once else "\n\n", flush=True)
        if options.once:
            return 0
        before = after


def look_live(client: Client, options: argparse.Namespace, output: IO[str] | None) -> int:
    from rich.live import Live

    before = client.snapshot()
    with Live(screen=True, auto_refresh=False) as screen:
        while True:
            time.sleep(min(options.interval, 0.2) if before["loops"] == [] else options.interval)
            after = client.snapshot()
            screen.update(picture(after, rates(before, after), last_lines(output)), refresh=True)
            before = after


def last_lines(output: IO[str] | None, count: int = 5) -> list[str]:
    if output is None:
        return []
    output.seek(max(0, os.fstat(output.fileno()).st_size - 4096))
    return output.read().splitlines()[-count:]


def look_at_script(options: argparse.Namespace, live: bool) -> int:
    """Start the script with an inspector, and show its loops until it ends. The live view shows the script's output,
    and prints it all afterwards; otherwise the output goes to stderr."""
    command = [sys.executable, "-m", "uringloop", "run"]
    command += [] if options.engine is None else ["--engine", options.engine]
    command += ["--keep-uvloop"] if options.keep_uvloop else []
    command += [] if options.module is None else ["-m", options.module]
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as output:
        child = subprocess.Popen(
            [*command, *options.program],
            env={**os.environ, "URINGLOOP_INSPECT": "1"},
            stdin=subprocess.DEVNULL,
            stdout=output if live else sys.stderr,
            stderr=output if live else None,
        )
        try:
            client = wait_for(child)
            if client is None:
                return ended(child, "the program ended before it made a loop")
            try:
                with client:
                    return look(client, options, live, output if live else None)
            except InspectionFailed:
                with suppress(subprocess.TimeoutExpired):
                    child.wait(1)
                if child.poll() is None:
                    raise
            return ended(child, "the program has ended")
        finally:
            stop(child)
            if live:
                output.seek(0)
                print(output.read(), end="")


def wait_for(child: subprocess.Popen[bytes]) -> Client | None:
    while child.poll() is None:
        try:
            return Client(child.pid)
        except InspectionFailed:
            time.sleep(0.02)
    return None


def ended(child: subprocess.Popen[bytes], what: str) -> int:
    code = child.wait()
    print(f"uringloop top: {what}, exit code {code}", file=sys.stderr)
    return code if code >= 0 else 128 - code


def stop(child: subprocess.Popen[bytes]) -> None:
    """End the child if it still runs, and then remove the inspector's socket that it may have left."""
    if child.poll() is None:
        child.send_signal(signal.SIGTERM)
        try:
            child.wait(5)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
        for folder in folders():
            with suppress(OSError):
                (folder / socket_name(child.pid)).unlink()
