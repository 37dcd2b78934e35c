"""Server: the process that serves one sample, a Python loop or a bare C program. The parent's half."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

from benchmarks.candidate import Candidate
from benchmarks.cores import server_and_client_core
from benchmarks.native_build import certificate, native_program
from benchmarks.row import Failed, Skipped
from benchmarks.worker import child_environment

START_TIMEOUT = 15.0
WORK_NS = 20_000
BUSY_NS = 20_000


@dataclass(frozen=True)
class Order:
    """What is to be served."""

    kind: str
    family: str = "tcp"
    size: int = 1024
    tls: bool = False
    connections: int = 0
    answers: int = 1  # to each datagram
    settled: bool = False  # the server frees a large block before it starts
    ballast: int = 0  # of a fresh server


class Server:
    """A context manager around the process; `where` is what a client connects to."""

    def __init__(self, candidate: Candidate, order: Order) -> None:
        self._candidate = candidate
        self._order = order
        self._folder = tempfile.TemporaryDirectory(prefix="benchmark-")
        self._path = os.path.join(self._folder.name, "socket")
        self._process: subprocess.Popen[bytes] | None = None
        self.where = ""

    def __enter__(self) -> Server:
        # the file, not a pipe: a server that complains at length must not block on its complaints
        self._complaints = open(os.path.join(self._folder.name, "stderr"), "w+b")
        command = self._native_command() if self._candidate.native else self._python_command()
        environment = child_environment()
        if self._order.kind == "fresh":
            environment["BENCHMARK_PACED"] = "1"  # for the bare C servers: see native/common.h
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=self._complaints,
            env=environment,
            preexec_fn=self._pin if self._order.kind == "fresh" else None,  # the others pin themselves
        )
        try:
            port = self._port()
        except BaseException:
            self.__exit__(None, None, None)
            raise
        self.where = self._path if self._order.family == "unix" else port
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()
            if process.stdout is not None:
                process.stdout.close()
        self._complaints.close()
        self._folder.cleanup()

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def cpu(self) -> float:
        """The processor time of the server so far, all its threads, from the kernel's clock of that
        process.
        """
        return time.clock_gettime((~self.pid << 3) | 2)

    def resident(self) -> int:
        """Resident bytes."""
        with open(f"/proc/{self.pid}/status") as file:
            for line in file:
                if line.startswith("VmRSS:"):
                    return int(line.split()[1]) * 1024
        raise Failed("the server is gone")

    def page_faults(self) -> int:
        """The minor page faults of the server so far."""
        with open(f"/proc/{self.pid}/stat") as file:
            return int(file.read().rpartition(")")[2].split()[7])

    def complaint(self) -> str:
        """How the process ended, if it did, and its last words."""
        assert self._process is not None
        code = self._process.poll()
        self._complaints.seek(0)
        words = self._complaints.read().decode(errors="replace").strip().splitlines()
        last = words[-1] if words else ""
        return (f"server exit {code}: " if code is not None else "") + last[:200]

    def _python_command(self) -> list[str]:
        if self._order.kind == "fresh":
            program = str(Path(__file__).with_name("fresh_server.py"))
            options = json.dumps(self._candidate.options)
            return [sys.executable, program, self._candidate.module, options, str(self._order.ballast)]
        order: dict[str, Any] = {
            "kind": self._order.kind,
            "family": self._order.family,
            "size": self._order.size,
            "connections": self._order.connections,
            "answers": self._order.answers,
            "settled": self._order.settled,
            "path": self._path,
            "core": server_and_client_core()[0],
        }
        if self._order.tls:
            order["certificate"], order["key"] = map(str, certificate())
        return [sys.executable, "-m", "benchmarks.server_child", self._candidate.name, json.dumps(order)]

    def _pin(self) -> None:
        core = server_and_client_core()[0]
        if core >= 0 and not self._candidate.native:
            os.sched_setaffinity(0, {core})

    def _native_command(self) -> list[str]:
        kind = "protocol" if self._order.kind == "fresh" else self._order.kind
        work = WORK_NS if kind == "work" else 0
        common = [self._order.family, self._path if self._order.family == "unix" else "0"]
        common += [str(server_and_client_core()[0]), str(work)]
        if self._candidate.name == "c-epoll":
            return [str(native_program("epoll_server")), *common, kind]
        if self._candidate.name == "c-epoll-in-ring":
            return [str(native_program("epoll_server")), *common, "ring"]
        busy = BUSY_NS if self._candidate.name == "c-uring-busy" else 0
        return [str(native_program("uring_server")), *common, str(uring_buffer(self._order.size)), str(busy)]

    def _port(self) -> str:
        assert self._process is not None and self._process.stdout is not None
        if not select.select([self._process.stdout], [], [], START_TIMEOUT)[0]:
            raise Failed("hung: the server did not start")
        line = self._process.stdout.readline().decode().strip()
        if line:
            return line
        self._process.wait()
        complaint = self.complaint()
        if "No module named" in complaint and "loop" not in complaint:
            raise Skipped(complaint)
        raise Failed(complaint or "the server did not start")


def uring_buffer(size: int) -> int:
    """The provided buffers of the bare C server fit one message: the power of two above it, 4 to 128 KiB."""
    return min(max(1 << (size - 1).bit_length(), 4096), 131072)
