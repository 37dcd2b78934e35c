"""uringloop run: an unmodified asyncio program, on uringloop. Whatever loop the program asks asyncio for is one of
ours; processes that it starts are not affected."""

from __future__ import annotations

import argparse
import importlib.util
import os
import runpy
import sys

from uringloop.policy import install

HELP = "run an asyncio program on uringloop: run script.py ..., or run -m module ..."


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--engine", choices=["auto", "uring", "epoll"], help="uring: insist on io_uring")
    parser.add_argument("-m", dest="module", metavar="MODULE", help="a module, as with python -m")
    parser.add_argument(
        "program", nargs=argparse.REMAINDER, metavar="script.py ...", help="and its arguments"
    )


def split(arguments: list[str], valued: tuple[str, ...] = ()) -> tuple[list[str], list[str]]:
    """Our own arguments, and the program's: what stands behind the script, or behind -m MODULE, is the program's.
    `valued` are further options that are followed by a value."""
    at = 0
    while at < len(arguments):
        if arguments[at] == "-m":
            return arguments[: at + 2], arguments[at + 2 :]
        if not arguments[at].startswith("-"):
            break
        at += 2 if arguments[at] in ("--engine", *valued) else 1
    return arguments[:at], arguments[at:]


def complaint(options: argparse.Namespace, command: str) -> str:
    """What is wrong with the program that is to be run; "" for nothing."""
    if options.module is not None:
        return ""
    if not options.program:
        return f"uringloop {command}: say which program: script.py, or -m module"
    if not os.path.exists(options.program[0]):
        return f"uringloop {command}: there is no {options.program[0]}"
    return ""


def is_there(module: str) -> bool:
    """What is wrong inside a module, or in the package it is in, is for its traceback to say."""
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError as error:
        return not f"{module}.".startswith(f"{error.name}.")
    except (ImportError, ValueError):
        return True


def main(options: argparse.Namespace) -> int:
    if wrong := complaint(options, "run"):
        print(wrong, file=sys.stderr)
        return 2
    if options.engine is not None:
        os.environ["URINGLOOP_ENGINE"] = options.engine
    install()
    if options.module is not None:
        sys.argv = [options.module, *options.program]
        sys.path[0] = "" if not sys.flags.safe_path else sys.path[0]
        if not is_there(options.module):
            print(f"uringloop run: there is no module {options.module}", file=sys.stderr)
            return 2
        runpy.run_module(options.module, run_name="__main__", alter_sys=True)
        return 0
    script = options.program[0]
    sys.argv = list(options.program)
    if not sys.flags.safe_path:
        sys.path[0] = os.path.dirname(os.path.abspath(script))
    runpy.run_path(script, run_name="__main__")
    return 0
