"""Reaching a process that is to be dumped: why it can't be looked at and what to do, and, from Python 3.14 on, opening
an inspector in a process that was started without one."""

from __future__ import annotations

import os
import sys
import tempfile
import time
from pathlib import Path

from uringloop.errors import InspectionFailed
from uringloop.inspect.client import Client, NoInspector, _user

# The process removes the file itself: it may run it long after the dump has ended.
_OPEN = """import os, sys
os.unlink({path!r})
if "uringloop" in sys.modules:
    import uringloop.inspect
    uringloop.inspect.serve()
"""


def reach(pid: int, patience: float) -> Client:
    """A client of the process's inspector, which this opens if it can. InspectionFailed names the cause and the
    remedy."""
    _check(pid)
    try:
        return Client(pid)
    except NoInspector:
        pass
    if not _is_python(pid):
        raise InspectionFailed(f"process {pid} is no Python program: {_program(pid)}")
    if not hasattr(sys, "remote_exec"):
        raise InspectionFailed(
            f"process {pid} was started without URINGLOOP_INSPECT=1, and only Python 3.14 and later can open an "
            f"inspector in it now: start the program with URINGLOOP_INSPECT=1, or let it call "
            f"uringloop.inspect.serve(). For the stacks of this one, try `py-spy dump --pid {pid}`{_threads(pid)}"
        )
    return _open(pid, patience)


def _check(pid: int) -> None:
    status = _status(pid)
    owner = int(status["Uid"].split()[1])
    if owner != os.geteuid():
        name = _user(owner)
        raise InspectionFailed(
            f"process {pid} is {name}'s: only its own user may look at it. Run as that user: "
            f"sudo -u {name.removeprefix('user ')} {sys.executable} -m uringloop dump {pid}"
        )
    inner = status.get("NSpid", str(pid)).split()
    if len(inner) > 1:
        raise InspectionFailed(
            f"process {pid} runs in another PID namespace (a container), where its number is {inner[-1]}. Run there: "
            f"python -m uringloop dump {inner[-1]} (docker exec and nsenter -t {pid} -a take you there)"
        )
    state = status.get("State", "?")
    if state[0] in "Zx":
        raise InspectionFailed(f"process {pid} has ended; its parent has not yet waited for it")
    if state[0] in "Tt":
        raise InspectionFailed(
            f"process {pid} is stopped, by a signal or a debugger: kill -CONT {pid} lets it continue"
        )


def _status(pid: int) -> dict[str, str]:
    try:
        lines = Path(f"/proc/{pid}/status").read_text(errors="replace").splitlines()
    except OSError:
        raise InspectionFailed(
            f"there is no process {pid} here. A container's processes have other numbers inside and outside: take the "
            f"one that ps shows where you run this"
        ) from None
    return {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}


def _program(pid: int) -> str:
    try:
        return os.readlink(f"/proc/{pid}/exe")
    except OSError:
        return "its program can't be read"


def _is_python(pid: int) -> bool:
    if "python" in os.path.basename(_program(pid)):
        return True
    try:
        return "libpython" in Path(f"/proc/{pid}/maps").read_text(errors="replace")
    except PermissionError:
        raise InspectionFailed(
            f"the kernel doesn't let you look at process {pid}, which may not be dumped or has more rights than you: "
            f"run as root, or with CAP_SYS_PTRACE"
        ) from None
    except OSError:
        return False


def without_loops(pid: int) -> str:
    """That a process has none of uringloop's loops, in words; "" if it may have some."""
    try:
        mapped = Path(f"/proc/{pid}/maps").read_text(errors="replace")
    except OSError:
        return ""
    if "python" not in os.path.basename(_program(pid)) and "libpython" not in mapped:
        return f"process {pid} is no Python program: {_program(pid)}"
    if "uringloop/_compiled." in mapped:
        return ""
    return (
        f"process {pid} has no loop of uringloop: it never imported the library. `python -m uringloop run script.py` "
        f"runs a program of asyncio on it"
    )


def _threads(pid: int) -> str:
    """What the kernel says of the main thread."""
    try:
        state = Path(f"/proc/{pid}/task/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (OSError, IndexError):
        return ""
    return f" (its main thread {'runs: it uses the CPU' if state == 'R' else 'sleeps in the kernel'})"


def _open(pid: int, patience: float) -> Client:
    """Let the main thread of the process open an inspector, as soon as it runs Python code."""
    number, path = tempfile.mkstemp(suffix=".py", prefix="uringloop-")
    with open(number, "w") as script:
        script.write(_OPEN.format(path=path))
    try:
        sys.remote_exec(pid, path)  # type: ignore[attr-defined, unused-ignore]
    except (RuntimeError, OSError) as error:
        os.unlink(path)
        if isinstance(error, PermissionError):
            raise InspectionFailed(
                f"process {pid} was started without URINGLOOP_INSPECT=1, and the kernel doesn't let you open an "
                f"inspector in it: run as root or with CAP_SYS_PTRACE, or allow it: sysctl kernel.yama.ptrace_scope=0"
            ) from None
        raise InspectionFailed(
            f"process {pid} was started without URINGLOOP_INSPECT=1, and no inspector can be opened in it: {error}. "
            f"Use the Python that it runs on, or start it with URINGLOOP_INSPECT=1"
        ) from None
    end = time.monotonic() + patience
    while time.monotonic() < end:
        try:
            return Client(pid)
        except NoInspector:
            time.sleep(0.02)
    raise InspectionFailed(
        f"process {pid} opened no inspector within {patience:g} s: its main thread runs no Python code{_threads(pid)}, "
        f"or the program doesn't use uringloop. Dump again once the main thread has run, or start the program with "
        f"URINGLOOP_INSPECT=1: then a dump answers at any time"
    )
