"""uringloop bench: runs the project's own benchmarks, which are in its source tree and not in the installed package."""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import sys

HELP = "compare event loops on this machine (in the source tree)"


def main(arguments: list[str]) -> int:
    if importlib.util.find_spec("benchmarks") is None or importlib.util.find_spec("benchmarks.cli") is None:
        print(
            "The benchmarks are in the source tree of uringloop: get it, and there run `make bench`,\n"
            "which installs the loops to compare with, or `python -m uringloop bench`.",
            file=sys.stderr,
        )
        return 2
    code: int = importlib.import_module("benchmarks.cli").main(arguments, "uringloop bench")
    return code


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="--help shows them")
