"""The client of the inspector: asks a process what its loops do."""

from __future__ import annotations

import json
import os
import pwd
import socket
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any

from uringloop.errors import InspectionFailed
from uringloop.inspect.server import folders, socket_name, user_of

PATIENCE = 10  # seconds


class NoAnswer(InspectionFailed):
    """The process has an inspector, whose thread does not run."""


class NoInspector(InspectionFailed):
    """The process has no inspector."""


class Client:
    """A connection to the inspector of a process. If it fails or ends, InspectionFailed says why in one line."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._tracing = self._stopped = False
        self._connection = _connect(pid)
        self._connection.settimeout(PATIENCE)
        self._answers = self._connection.makefile("rb")

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self._answers.close()
        self._connection.close()

    def snapshot(self, tasks: int = 100) -> dict[str, Any]:
        self._ask({"want": "snapshot", "tasks": tasks})
        return self._answer()

    def trace(self, seconds: float, room: int) -> dict[str, Any]:
        """Record the next `seconds`, or with 0 until `stop`; return the trace."""
        self._connection.settimeout(None)
        self._ask({"want": "trace", "seconds": seconds, "room": room})
        self._tracing = True
        if self._stopped:
            self.stop()
        return self._answer()

    def dump(self, seconds: float, patience: float) -> dict[str, Any] | None:
        """Where the process is now; None if its inspector's thread doesn't answer within `patience` seconds."""
        self._connection.settimeout(patience)
        self._ask({"want": "dump", "seconds": seconds})
        try:
            return self._answer()
        except NoAnswer:
            return None

    def stop(self) -> None:
        """End the trace; the client can make no further request. A signal handler may call this at any moment."""
        self._stopped = True
        if self._tracing:
            with suppress(OSError):  # the connection has ended
                self._connection.shutdown(socket.SHUT_WR)

    def _ask(self, request: dict[str, Any]) -> None:
        try:
            self._connection.sendall(json.dumps(request).encode() + b"\n")
        except OSError:
            raise self._gone() from None

    def _answer(self) -> dict[str, Any]:
        try:
            line = self._answers.readline()
        except TimeoutError:
            raise NoAnswer(f"process {self.pid} does not answer; is it stopped?") from None
        except OSError:
            line = b""
        if not line.endswith(b"\n"):
            raise self._gone()
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise InspectionFailed(f"process {self.pid} answers: {answer['error']}")
        return answer

    def _gone(self) -> InspectionFailed:
        if not os.path.exists(f"/proc/{self.pid}"):
            return InspectionFailed(f"process {self.pid} has ended")
        return InspectionFailed(f"process {self.pid} hung up: it has ended, or has too many clients")


def _connect(pid: int) -> socket.socket:
    try:
        owner = os.stat(f"/proc/{pid}").st_uid
    except OSError:
        raise InspectionFailed(f"there is no process {pid}") from None
    if owner != os.geteuid():
        raise InspectionFailed(f"process {pid} is {_user(owner)}'s: only its own user may look at it")
    for folder in _places(owner):
        connection = socket.socket(socket.AF_UNIX)
        connection.settimeout(PATIENCE)
        try:
            connection.connect(str(folder / socket_name(pid)))
            if user_of(connection)[1] == owner:
                return connection
        except BlockingIOError:  # clients that never got an answer fill the backlog
            connection.close()
            raise NoAnswer(f"process {pid} does not answer; is it stopped?") from None
        except OSError:
            pass
        connection.close()
    raise NoInspector(
        f"process {pid} opens no inspector: start it with URINGLOOP_INSPECT=1, or let it call uringloop.inspect.serve()"
    )


def _places(owner: int) -> list[Path]:
    """The folders where the socket may be: the environment of the process may differ from ours."""
    return list(dict.fromkeys([*folders(), Path(f"/run/user/{owner}"), Path("/tmp")]))


def _user(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"user {uid}"
