"""Runs paths of a build under callgrind and reads what it wrote."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tools.counts.builds import PROJECT

SECONDS = 300  # no run takes that long
KEPT = ("PATH", "LD_LIBRARY_PATH", "TMPDIR")

LABEL = re.compile(r"^desc: Trigger: Client Request: (.+) x([12])$", re.MULTILINE)
TOTAL = re.compile(r"^(?:totals|summary): (\d+)", re.MULTILINE)
NAME = re.compile(r"c?fn=\((\d+)\)(?: (.+))?")


class NotCounted(Exception):
    """The program did not come to its end."""


@dataclass(frozen=True)
class Counted:
    """One path: instructions an operation, or why it could not be done."""

    path: str
    instructions: float
    functions: dict[str, float]  # the same, by function
    error: str | None = None


def functions_of(dump: str) -> Counter[str]:
    """The instructions of each function itself. A name is given once, and by its number from then on."""
    names: dict[str, str] = {}
    spent: Counter[str] = Counter()
    function, of_a_call = "", False
    for line in dump.splitlines():
        if found := NAME.match(line):
            number, name = found.groups()
            if name:
                names[number] = re.sub(r"'\d+$", "", name)  # of recursion
            if line.startswith("fn="):
                function = names[number]
        elif line.startswith("calls="):
            of_a_call = True  # the next line has what the called one took
        elif line[:1].isdigit() or line[:1] in ("+", "-", "*"):
            if not of_a_call:
                spent[function] += int(line.split()[1])
            of_a_call = False
    return spent


def read_dumps(dumps: Iterable[str], times: dict[str, int]) -> list[Counted]:
    """For each path the difference between its two windows, an operation: what beginning and ending take is in both."""
    windows: dict[str, dict[str, str]] = {}
    for dump in dumps:
        if label := LABEL.search(dump):
            windows.setdefault(label[1], {})[label[2]] = dump
    counted = []
    for path, window in windows.items():
        if path not in times:
            continue  # it failed
        once, twice = (TOTAL.search(window[factor]) for factor in "12")
        if once is None or twice is None:
            raise NotCounted(f"callgrind did not say what {path} took")
        spent = functions_of(window["2"])
        spent.subtract(functions_of(window["1"]))
        functions = {name: count / times[path] for name, count in spent.items() if count}
        counted.append(Counted(path, (int(twice[1]) - int(once[1])) / times[path], functions))
    return counted


def command_of(layout: int, library: Path, package: Path, paths: Sequence[str]) -> list[str]:
    program = [sys.executable, "-m", "tools.counts.counted", str(layout), str(library), str(package)]
    return [*program, *paths]


def environment_of(engine: str, library: Path, package: Path) -> dict[str, str]:
    """The same for everyone: a variable more moves what is on the stack."""
    kept = {name: os.environ[name] for name in KEPT if name in os.environ}
    return kept | {
        "LANG": "C.UTF-8",
        "LD_PRELOAD": str(library),
        "PYTHONHASHSEED": "0",
        "PYTHONPATH": f"{package}:{PROJECT}",
        "PYTHONSAFEPATH": "1",
        "URINGLOOP_ENGINE": engine,
    }


def reports(done: subprocess.CompletedProcess[str]) -> list[dict[str, object]]:
    if done.returncode:
        raise NotCounted(f"status {done.returncode}: {done.stderr.strip()[-500:]}")
    return [json.loads(line) for line in done.stdout.splitlines()]


def try_out(engine: str, library: Path, package: Path) -> dict[str, str]:
    """Without callgrind: the paths that fail, and why. Compiles what is imported, too, or the first run that is
    counted would differ from the others."""
    done = subprocess.run(
        command_of(0, library, package, ()), env=environment_of(engine, library, package), cwd=PROJECT,
        capture_output=True, text=True, timeout=SECONDS,
    )  # fmt: skip
    return {str(one["path"]): str(one["error"]) for one in reports(done) if one["error"]}


def count(engine: str, layout: int, library: Path, package: Path, paths: Sequence[str]) -> list[Counted]:
    with tempfile.TemporaryDirectory(prefix="counts-") as folder:
        callgrind = [
            "valgrind", "--quiet", "--tool=callgrind", "--instr-atstart=no", "--dump-line=no",
            f"--callgrind-out-file={folder}/out", f"--log-file={folder}/log",
        ]  # fmt: skip
        done = subprocess.run(
            [*callgrind, *command_of(layout, library, package, paths)], cwd=PROJECT,
            env=environment_of(engine, library, package), capture_output=True, text=True, timeout=SECONDS,
        )  # fmt: skip
        times = {str(one["path"]): int(str(one["times"])) for one in reports(done) if not one["error"]}
        return read_dumps((dump.read_text() for dump in sorted(Path(folder).glob("out.*"))), times)
