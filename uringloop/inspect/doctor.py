"""The doctor: what this machine offers and refuses, why, and what to do about it. Changes nothing; makes one
short-lived ring, as the first loop does."""

from __future__ import annotations

import os
import platform
import resource
import sys
import sysconfig
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

from uringloop._core.kernel.probe import locked_by_a_ring, locked_memory, offered, refusal, switched_off
from uringloop._core.lifetime.counters import DEBUG_BUILD
from uringloop.inspect.server import folders
from uringloop.version import __version__

# Each feature that the core probes: the first kernel that has it, and its purpose.
FEATURES = {
    "single_issuer": ("6.0", "one thread submits: the kernel takes no lock"),
    "defer_taskrun": ("6.1", "completions are worked on when the loop asks, not between two instructions"),
    "coop_taskrun": ("5.19", "the same, less strictly, where defer_taskrun is not used"),
    "taskrun_flag": ("5.19", "memory says whether entering the kernel is worth it"),
    "submit_all": ("5.18", "one bad entry does not stop those behind it"),
    "no_sqarray": ("6.6", "one table less between the loop and the kernel"),
    "registered_ring": ("5.18", "entering the kernel looks no descriptor up"),
    "abs_timer": ("6.12", "deadlines as points in time"),
    "no_iowait": ("6.15", "an idle loop shows as idle, not as iowait"),
    "quiet_send": ("5.17", "a send that succeeds posts no completion"),
    "buffer_ring": ("5.19", "idle connections hold no receive buffer"),
    "multishot_recv": ("6.0", "one operation receives until the connection ends"),
    "multishot_accept": ("5.19", "one operation accepts until the server stops"),
    "epoll_wait": ("6.15", "readiness for add_reader comes with the descriptors that are ready"),
    "waitid": ("6.7", "waits for processes without a descriptor each"),
    "ftruncate": ("6.9", "truncates files without a thread"),
    "fixed_buffers": ("5.19", "files are read into memory that the kernel has pinned once"),
    "udp_segment": ("4.18", "datagrams of one size for one address leave as one message"),
    "restrictions": ("5.10", "a ring can be restricted to what uringloop uses (URINGLOOP_RESTRICT)"),
}
_WITHOUT_RING = {"udp_segment"}
FEW_LOOPS = 64
MACHINES_PIDS = 0xEFFFFFFC  # the inode of the first namespace of process IDs: PROC_PID_INIT_INO in the kernel
DISTRIBUTION = "uringloop-asyncio"  # on PyPI, `uringloop` is another project
_INSTEAD = {"coop_taskrun": "defer_taskrun"}  # the loop uses the second instead, if the kernel offers it


@dataclass(frozen=True)
class Feature:
    name: str
    used: bool
    since: str  # kernel
    note: str


@dataclass(frozen=True)
class Report:
    """What `diagnose` found."""

    usable: bool  # io_uring is usable
    chosen: bool  # URINGLOOP_ENGINE chooses epoll, whether or not io_uring is usable
    cause: str  # why io_uring is refused; "" if it is usable
    versions: dict[str, str]
    limits: dict[str, str]
    features: list[Feature]
    advice: list[str]

    @property
    def exit_code(self) -> int:
        return 0 if self.usable or self.chosen else 1


def diagnose() -> Report:
    """Probe the machine. Raises OSError if the kernel is temporarily short of a resource."""
    try:
        refused = refusal()
        locked = 0 if refused is not None else locked_by_a_ring()
    except OSError as error:
        refused, locked = locked_memory(error), 0
        if refused is None:
            raise
    chosen = os.environ.get("URINGLOOP_ENGINE") == "epoll"
    cause, advice = "", []
    if refused is not None:
        _, cause, remedy = refused
        instead = "" if chosen else ", loops run on epoll instead"
        advice.append(f"io_uring is refused{instead}. To allow it: {remedy}.")
    limits = _limits()
    limits["locked memory"] = _locked(refused is None, locked)
    features = _features(refused is None)
    return Report(
        refused is None, chosen, cause, _versions(), limits, features, advice + _further(limits, locked)
    )


def _versions() -> dict[str, str]:
    kind = ", debug build" if DEBUG_BUILD else ""
    threaded = ", free-threaded" if sysconfig.get_config_var("Py_GIL_DISABLED") else ""
    found = {
        "uringloop": __version__ + kind,
        "Python": f"{platform.python_implementation()} {platform.python_version()}{threaded}",
        "kernel": platform.release(),
        "machine": platform.machine(),
        "C library": " ".join(platform.libc_ver()).strip() or "unknown",
    }
    try:
        found["liburing"] = metadata.version("liburing")
    except metadata.PackageNotFoundError:
        found["liburing"] = "not installed (needed by uringloop.ops only)"
    return found


def _limits() -> dict[str, str]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    return {
        "open files": f"{soft} (at most {_amount(hard)})",
        "kernel.io_uring_disabled": _read("/proc/sys/kernel/io_uring_disabled") or "not there (6.6 has it)",
        "kernel.io_uring_group": _read("/proc/sys/kernel/io_uring_group") or "not there",
        "root file system": "read-only" if os.statvfs("/").f_flag & os.ST_RDONLY else "writable",
        "process IDs": _process_ids(),
        "folder of the inspector": str(_inspector_folder() or "none that is writable"),
        "seccomp filter": {"0": "none", "1": "strict", "2": "yes"}.get(_status("Seccomp"), "unknown"),
        "container": _container(),
        "URINGLOOP_ENGINE": os.environ.get("URINGLOOP_ENGINE", "not set"),
        "URINGLOOP_DISABLE": os.environ.get("URINGLOOP_DISABLE", "not set"),
        "URINGLOOP_RESTRICT": os.environ.get("URINGLOOP_RESTRICT", "not set"),
        "URINGLOOP_PLAIN": os.environ.get("URINGLOOP_PLAIN", "not set"),
        "URINGLOOP_MALLOC": os.environ.get("URINGLOOP_MALLOC", "not set"),
        "URINGLOOP_INSPECT": os.environ.get("URINGLOOP_INSPECT", "not set (1: `uringloop top` may look)"),
    }


def _process_ids() -> str:
    try:
        own = os.stat("/proc/self/ns/pid").st_ino != MACHINES_PIDS
    except OSError:
        return "unknown"
    return "a namespace of their own: run `top` and `dump` inside it" if own else "the machine's"


def _inspector_folder() -> Path | None:
    """Where `uringloop top` and the others would find the socket of a process that is inspected."""
    return next((folder for folder in folders() if os.access(folder, os.W_OK | os.X_OK)), None)


def _owners() -> set[str]:
    """The distributions that have installed a package named uringloop."""
    return set(metadata.packages_distributions().get("uringloop", []))


def _loops_that_fit(locked: int) -> int:
    return resource.getrlimit(resource.RLIMIT_MEMLOCK)[0] // locked


def _locked(usable: bool, locked: int) -> str:
    """Describe the limit of locked memory. `locked` is how much of it the ring of one loop takes."""
    soft, hard = resource.getrlimit(resource.RLIMIT_MEMLOCK)
    unlimited = resource.RLIM_INFINITY
    limit = _amount(soft) if soft == unlimited else f"{soft // 1024} KB"
    limit += (
        f" (at most {_amount(hard) if hard == unlimited else f'{hard // 1024} KB'}); FixedBuffers count in it"
    )
    if not usable:
        return limit
    if not locked:
        return f"{limit}, rings don't"
    room = f"room for {_loops_that_fit(locked)} loops"
    return f"{limit}, and so do the rings of all this user's processes: {room}"


def _features(usable: bool) -> list[Feature]:
    here, off = offered(), switched_off()
    if not usable:
        here = {name: used and name in _WITHOUT_RING for name, used in here.items()}
    found = []
    for name, (since, what) in FEATURES.items():
        note = what
        if not here[name]:
            instead = _INSTEAD.get(name)
            if name in off:
                note = "switched off by URINGLOOP_DISABLE"
            elif instead is not None and here[instead]:
                note = f"not needed: {instead} is used"
            elif not usable:
                note = f"not used: no ring can be made; {what}"
            else:
                note = f"not offered; {what}"
        found.append(Feature(name, here[name], since, note))
    return found


def _further(limits: dict[str, str], locked: int) -> list[str]:
    advice = []
    if locked and _loops_that_fit(locked) < FEW_LOOPS:
        advice.append(
            f"The locked memory has room for {_loops_that_fit(locked)} loops of this user's; those after them get"
            " smaller rings, or run on epoll. To raise it: ulimit -l, LimitMEMLOCK= in a unit of systemd,"
            " docker run --ulimit memlock=."
        )
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < 4096 and (hard == resource.RLIM_INFINITY or hard > soft):
        advice.append(f"Only {soft} files may be open; a server wants more: ulimit -n {min(hard, 65536)}.")
    elif soft < 4096:
        advice.append(
            f"Only {soft} files may be open, and this process can't raise that; a server wants more: ask for it by"
            " LimitNOFILE= in a unit of systemd, docker run --ulimit nofile=65536, or /etc/security/limits.conf."
        )
    if _inspector_folder() is None:
        advice.append(
            "`uringloop top`, `trace` and `dump` find no process here: the folders for their sockets are not writable."
            " Mount a tmpfs at /tmp, or set XDG_RUNTIME_DIR to a folder that is writable."
        )
    if others := _owners() - {DISTRIBUTION}:
        advice.append(
            f"{' and '.join(sorted(others))} has installed a package named uringloop, too: the two overwrite each"
            f" other's files. Uninstall both, then install {DISTRIBUTION}."
        )
    if limits["URINGLOOP_ENGINE"] == "epoll":
        advice.append(
            "Loops use epoll as URINGLOOP_ENGINE says so: unset it, and they use io_uring where they may."
        )
    if DEBUG_BUILD:
        advice.append("This is a debug build, made for tests: it is slow.")
    if sys.flags.dev_mode or os.environ.get("PYTHONASYNCIODEBUG"):
        advice.append("asyncio's debug mode is on: it is slow.")
    return advice


def _amount(limit: int) -> str:
    return "any number" if limit == resource.RLIM_INFINITY else str(limit)


def _read(path: str) -> str:
    try:
        return Path(path).read_text().strip()
    except OSError:
        return ""


def _status(name: str) -> str:
    for line in _read("/proc/self/status").splitlines():
        if line.startswith(f"{name}:"):
            return line.split(":")[1].strip()
    return ""


def _container() -> str:
    if "gVisor" in _read("/proc/version") or "gVisor" in _read("/proc/sys/kernel/version"):
        return "gVisor, which has no io_uring"
    if os.environ.get("KUBERNETES_SERVICE_HOST"):
        return "Kubernetes"
    for mark, name in (("/.dockerenv", "Docker"), ("/run/.containerenv", "Podman")):
        if os.path.exists(mark):
            return name
    return "none seen"


def as_dict(report: Report) -> dict[str, Any]:
    """The report as a dictionary, for JSON."""
    return {
        "usable": report.usable,
        "engine": "uring" if report.usable and not report.chosen else "epoll",
        "chosen": report.chosen,
        "cause": report.cause,
        "versions": report.versions,
        "limits": report.limits,
        "features": {f.name: {"used": f.used, "since": f.since, "note": f.note} for f in report.features},
        "advice": report.advice,
    }
