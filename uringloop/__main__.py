"""The command line: `uringloop`, or `python -m uringloop`. Each command is a file of uringloop/commands."""

from __future__ import annotations

import argparse
import importlib
import os
import signal
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

from uringloop.version import __version__

COMMANDS = ("doctor", "run", "top", "trace", "dump", "bench")
PROGRAMS = ("run", "top", "trace")  # the commands that run a program


def _command(name: str) -> Any:
    return importlib.import_module(f"uringloop.commands.{name}")


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        """Print the error in one line, and refer to --help for the usage."""
        self.exit(2, f"{self.prog}: {message} (see {self.prog} --help)\n")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="uringloop",
        description="An asyncio event loop for Linux whose only way to sleep is one io_uring.",
    )
    parser.add_argument("--version", action="version", version=f"uringloop {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name in COMMANDS:
        command = _command(name)
        _command(name).arguments(commands.add_parser(name, help=command.HELP, description=command.__doc__))
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    if not given:
        _parser().print_help(sys.stderr)
        return 2
    # argparse must not parse the arguments of a benchmark or of the user's program.
    if given[:1] == ["bench"]:
        return int(_command("bench").main(given[1:]))
    program: list[str] = []
    if given[:1] and given[0] in PROGRAMS and given[1:] not in (["-h"], ["--help"]):
        ours, program = _command(given[0]).split(given[1:])
        given = [given[0], *ours]
    parser = _parser()
    options, unknown = parser.parse_known_args(given)
    if unknown:
        wrong = f"unrecognized arguments: {' '.join(unknown)}"
        parser.exit(2, f"uringloop {options.command}: {wrong} (see uringloop {options.command} --help)\n")
    if options.command in PROGRAMS:
        options.program = program
    return int(_command(options.command).main(options))


def run() -> int:
    """Run `main` as a program: handle Ctrl-C, and a reader of the output that ends first, as `head` does."""
    if sys.argv[1:2] and sys.argv[1] in PROGRAMS:
        return main()  # exceptions of the user's program pass through
    try:
        code = main()
        sys.stdout.flush()
        return code
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 128 + signal.SIGINT
    except BrokenPipeError:
        # otherwise the interpreter reports the failed flush when it exits
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 128 + signal.SIGPIPE


if __name__ == "__main__":
    sys.exit(run())
