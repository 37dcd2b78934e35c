"""The stack handler: a signal handler in C that writes the stacks of all threads into memory that a client can read. It
needs no GIL, so it works while C code holds that for ever. It costs nothing until the signal arrives."""

from __future__ import annotations

import ctypes
import faulthandler
import fcntl
import os
import re
import signal
import time
from contextlib import suppress
from typing import Any

from uringloop.inspect.frames import is_own, own_place

NAME = "uringloop-stacks"
_LINK = re.compile(rf"/memfd:{NAME}-(\d+)-(\d+) ")
_THREAD = re.compile(r"(?:Current thread|Thread) 0x([0-9a-f]+)")
_FRAME = re.compile(r'  File "(.*)", line (\d+) in (.*)')
SETTLED = 0.1  # seconds without further output, after which the stacks are complete


class StackHandler:
    """The handler of this process, until `close`. A client sends the signal to `thread`, a native number."""

    def __init__(self, thread: int) -> None:
        self.signal = _free_signal()
        self._fd = os.memfd_create(f"{NAME}-{self.signal}-{thread}")
        try:
            flags = fcntl.fcntl(self._fd, fcntl.F_GETFL)
            fcntl.fcntl(self._fd, fcntl.F_SETFL, flags | os.O_APPEND)  # the client empties the file
            faulthandler.register(self.signal, self._fd, all_threads=True, chain=False)
        except BaseException:
            os.close(self._fd)
            raise

    def close(self) -> None:
        faulthandler.unregister(self.signal)
        os.close(self._fd)


def _free_signal() -> int:
    for number in range(signal.SIGRTMAX, signal.SIGRTMIN, -1):
        if signal.getsignal(number) is signal.SIG_DFL:
            return int(number)
    raise OSError("no real-time signal is free")


def read_stacks(pid: int, seconds: float) -> list[dict[str, Any]] | None:
    """The threads of another process with their stacks; None if it has no stack handler, or doesn't answer in time."""
    found = _find(pid)
    if found is None:
        return None
    path, number, thread = found
    with open(path, "r+b", buffering=0) as file:
        file.truncate(0)
        _send(pid, thread, number)
        end, size, settled = time.monotonic() + seconds, 0, 0.0
        while time.monotonic() < end:
            now = os.fstat(file.fileno()).st_size
            if now != size:
                size, settled = now, time.monotonic() + SETTLED
            elif size and time.monotonic() >= settled:
                text = file.read().decode(errors="replace")
                file.truncate(0)
                return parse(text)
            time.sleep(0.01)
    return None


def _find(pid: int) -> tuple[str, int, int] | None:
    folder = f"/proc/{pid}/fd"
    with suppress(OSError):
        for name in os.listdir(folder):
            with suppress(OSError):
                match = _LINK.match(os.readlink(f"{folder}/{name}"))
                if match is not None and _catches(pid, int(match[1])):
                    return f"{folder}/{name}", int(match[1]), int(match[2])
    return None


def _catches(pid: int, number: int) -> bool:
    """Whether the process handles the signal: otherwise it would end the process."""
    with open(f"/proc/{pid}/status") as status:
        for line in status:
            if line.startswith("SigCgt:"):
                return bool(int(line.split()[1], 16) >> (number - 1) & 1)
    return False


def _send(pid: int, thread: int, number: int) -> None:
    """Signal the inspector's thread: in any other the signal might interrupt a call of the program's."""
    tgkill = getattr(ctypes.CDLL(None, use_errno=True), "tgkill", None)
    if tgkill is None or tgkill(pid, thread, number) != 0:
        os.kill(pid, number)


def parse(text: str) -> list[dict[str, Any]]:
    """The threads in what faulthandler wrote; `suspect` are those that may hold the GIL."""
    threads: list[dict[str, Any]] = []
    for line in text.splitlines():
        if match := _THREAD.match(line):
            threads.append(
                {"ident": int(match[1], 16), "name": None, "native_id": None, "loop": None, "stack": []}
            )
        elif (match := _FRAME.match(line)) and threads:
            threads[-1]["stack"].insert(0, {"file": match[1], "line": int(match[2]), "function": match[3]})
    found = [thread for thread in threads if not _is_inspectors(thread["stack"])]
    for thread in found:
        thread["at"] = own_place(thread["stack"])
        thread["calls"] = None
        thread["state"] = "suspect" if thread["stack"] and is_own(thread["stack"][-1]["file"]) else "waiting"
    if not any(thread["state"] == "suspect" for thread in found):
        for thread in found:
            thread["state"] = (
                "suspect" if thread["at"] is not None and is_own(thread["at"]["file"]) else "waiting"
            )
    return found


def _is_inspectors(stack: list[dict[str, Any]]) -> bool:
    return any(place["file"].endswith(("inspect/server.py", "inspect/watchdogs.py")) for place in stack)
