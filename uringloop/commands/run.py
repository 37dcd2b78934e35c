"""uringloop run: runs an unmodified asyncio program on uringloop. Every loop that the program gets from asyncio is a
uringloop loop, and so is every loop of uvloop, which the program may have chosen. The same holds for the Python
processes that the program starts, its workers for instance."""

from __future__ import annotations

import argparse
import importlib.util
import io
import os
import runpy
import sys
import zipfile
from importlib.machinery import SourceFileLoader
from types import ModuleType, TracebackType

from uringloop.redirects import redirect

HELP = "run an asyncio program on uringloop: run script.py ..., or run -m module ..."


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--engine", choices=["auto", "uring", "epoll"], help="uring: insist on io_uring")
    parser.add_argument(
        "--keep-uvloop", action="store_true", help="let the program use uvloop, where it chooses that"
    )
    parser.add_argument("-m", dest="module", metavar="MODULE", help="a module, as with python -m")
    parser.add_argument(
        "program", nargs=argparse.REMAINDER, metavar="script.py ...", help="and its arguments"
    )


def split(arguments: list[str], valued: tuple[str, ...] = ()) -> tuple[list[str], list[str]]:
    """Split the command line into our own arguments and the program's: those after the script, or after -m MODULE.
    `valued` are further options of ours that take a value."""
    at = 0
    while at < len(arguments):
        if arguments[at] == "-m":
            return arguments[: at + 2], arguments[at + 2 :]
        if not arguments[at].startswith("-"):
            break
        at += 2 if arguments[at] in ("--engine", *valued) else 1
    return arguments[:at], arguments[at:]


def complaint(options: argparse.Namespace, command: str, imports: bool = True) -> str:
    """Say why the program can't be run; "" if it can. `imports` allows importing a module's package to find out."""
    before = sys.path[0]
    set_path(options)
    try:
        wrong = (
            in_module(options.module, imports) if options.module is not None else in_script(options.program)
        )
    finally:
        sys.path[0] = before
    return wrong and f"uringloop {command}: {wrong}"


def in_script(program: list[str]) -> str:
    if not program:
        return "say which program: script.py, or -m module"
    script = program[0]
    if not os.path.exists(script):
        return f"there is no {script}"
    if os.path.isdir(script) and not os.path.exists(os.path.join(script, "__main__.py")):
        return f"{script} is a folder without a __main__.py"
    return "" if os.access(script, os.R_OK) else f"{script} can not be read"


def in_module(module: str, imports: bool) -> str:
    """Say why the module can't be run. Errors inside the module or its package are left to their traceback."""
    missing = f"there is no module {module}"
    if module.startswith("."):
        return missing
    try:
        found = importlib.util.find_spec(module if imports else module.partition(".")[0])
        if found is None:
            return missing
        if imports and found.submodule_search_locations is not None:
            main = importlib.util.find_spec(f"{module}.__main__")
            return f"{module} is a package without a __main__" if main is None else ""
    except ModuleNotFoundError as error:
        return missing if f"{module}.".startswith(f"{error.name}.") else ""
    except Exception:
        pass
    return ""


def main(options: argparse.Namespace) -> int:
    redirect(options.keep_uvloop)  # before `complaint` imports the package of a module
    if wrong := complaint(options, "run"):
        print(wrong, file=sys.stderr)
        return 2
    return execute(options)


def set_path(options: argparse.Namespace) -> None:
    """Set sys.path[0] as Python sets it for the program; with -P, leave it alone."""
    if not sys.flags.safe_path:
        script = options.program[0] if options.module is None and options.program else None
        sys.path[0] = "" if script is None else os.path.dirname(os.path.abspath(script))


def execute(options: argparse.Namespace) -> int:
    if options.engine is not None:
        os.environ["URINGLOOP_ENGINE"] = options.engine
    set_path(options)
    if sys.excepthook is sys.__excepthook__:
        sys.excepthook = without_our_frames
    if options.module is not None:
        sys.argv = [options.module, *options.program]
        runpy.run_module(options.module, run_name="__main__", alter_sys=True)
    else:
        sys.argv = list(options.program)
        script = options.program[0]
        if os.path.isdir(script) or script.endswith(".pyc") or zipfile.is_zipfile(script):
            runpy.run_path(script, run_name="__main__")
        else:
            execute_script(os.path.abspath(script))
    return 0


def execute_script(path: str) -> None:
    """Run a script as Python itself does: `__file__` is absolute even if sys.argv[0] isn't, and `__main__` stays after
    the script has ended, for threads and atexit."""
    main = ModuleType("__main__")
    main.__file__ = path
    main.__loader__ = SourceFileLoader("__main__", path)
    sys.modules["__main__"] = main
    with io.open_code(path) as file:
        code = compile(file.read(), path, "exec")
    exec(code, main.__dict__)


def without_our_frames(
    kind: type[BaseException], error: BaseException, traceback: TracebackType | None
) -> None:
    """Show the traceback as for a program that Python itself runs: without the frames up to `execute`, and without
    those of runpy and of this module."""
    at, runs = traceback, False
    while at is not None and not runs:
        runs, at = at.tb_frame.f_code is execute.__code__, at.tb_next
    while at is not None and at.tb_frame.f_globals.get("__name__") in ("runpy", __name__):
        at = at.tb_next
    if at is not None or (runs and isinstance(error, SyntaxError)):
        error.__traceback__ = traceback = at
    sys.__excepthook__(kind, error, traceback)
