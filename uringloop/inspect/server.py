"""The inspector: a Unix socket that tells processes of the same user what the loops of this process do. A thread of its
own serves it, so it answers even if a loop is stuck; without a client it costs nothing.

A request is one line of JSON, `{"want": "snapshot"}`, `{"want": "trace"}` or `{"want": "dump"}`; so is the answer."""

from __future__ import annotations

import atexit
import json
import os
import socket
import struct
import threading
import warnings
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any

from uringloop._core.handoff.wait_times import record_wait_times
from uringloop._core.loop.monitor import OPERATIONS, TIMES
from uringloop.errors import InspectorWarning
from uringloop.inspect.dumps import dump
from uringloop.inspect.observers import Observer
from uringloop.inspect.snapshots import snapshot
from uringloop.inspect.stack_handler import StackHandler
from uringloop.inspect.tracing import ROOM, Tracing

MOST_CLIENTS = 8
MOST_REQUEST = 4096  # bytes
PATIENCE = 10  # seconds to wait for a client that doesn't read


def folders() -> list[Path]:
    """The folders for the socket: the inspector uses the first that works."""
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    return [Path(runtime), Path("/tmp")] if runtime else [Path("/tmp")]


def socket_name(pid: int | str) -> str:
    return f"uringloop-{pid}.sock"


def user_of(connection: socket.socket) -> tuple[int, int]:
    """The process ID and user ID of the peer, from the kernel."""
    size = struct.calcsize("3i")
    pid, uid, _ = struct.unpack("3i", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size))
    return pid, uid


class Inspector:
    """What `serve` returns: the socket and the threads that serve it, until `close`."""

    def __init__(self) -> None:
        record_wait_times()
        self._guard = threading.Lock()
        self._pid = os.getpid()
        self._clients: set[socket.socket] = set()
        self._threads: set[threading.Thread] = set()
        self._stacks: StackHandler | None = None
        self.closed = False
        self._listening, self.path = _listen()
        self._thread = threading.Thread(target=self._accept, name="uringloop inspector", daemon=True)
        self._thread.start()
        with suppress(OSError):  # without it there are no stacks while C code holds the GIL
            self._stacks = StackHandler(self._thread.native_id or 0)
        atexit.register(self.close)

    def __repr__(self) -> str:
        return f"<Inspector {'closed' if self.closed else self.path} clients={len(self._clients)}>"

    def __enter__(self) -> Inspector:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the connections and the threads, and remove the socket."""
        global _serving
        with self._guard:
            if self.closed:
                return
            self.closed = True
            clients, threads = set(self._clients), set(self._threads)
        atexit.unregister(self.close)
        if _serving is self:
            _serving = None
        with suppress(OSError):
            self.path.unlink()
        for each in (self._listening, *clients):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)  # wakes its thread
        for thread in (self._thread, *threads):
            if thread is not threading.current_thread():
                thread.join(PATIENCE)
        self._listening.close()
        if self._stacks is not None:
            self._stacks.close()

    def _left_by_fork(self) -> None:
        """In a forked child: close our copies of the descriptors. Socket, threads and clients belong to the parent."""
        self.closed = True
        atexit.unregister(self.close)
        self._listening.close()
        for client in list(self._clients):
            with suppress(OSError):
                os.close(client.detach())  # not close(): a thread that the child lacks may have been using it
        if self._stacks is not None:
            self._stacks.close()

    # The inspector's own threads

    def _accept(self) -> None:
        while not self.closed:
            try:
                client, _ = self._listening.accept()
            except OSError:
                if self.closed:
                    return
                threading.Event().wait(0.1)  # out of descriptors: retrying at once would occupy a core
                continue
            with self._guard:
                welcome = (
                    not self.closed
                    and user_of(client)[1] == os.geteuid()
                    and len(self._clients) < MOST_CLIENTS
                )
                if welcome:
                    thread = threading.Thread(
                        target=self._serve, args=(client,), name="uringloop inspection", daemon=True
                    )
                    self._clients.add(client)
                    self._threads.add(thread)
            if welcome:
                thread.start()
            else:
                client.close()

    def _serve(self, client: socket.socket) -> None:
        look = Observer(TIMES | OPERATIONS)
        try:
            with client, client.makefile("rb") as requests:
                client.settimeout(None)
                while True:
                    line = requests.readline(MOST_REQUEST)
                    if not line.endswith(b"\n"):
                        return
                    self._send(client, self._answer(line, client))
        except (OSError, ValueError):
            pass  # the client is gone
        finally:
            look.end()
            with self._guard:
                self._clients.discard(client)
                self._threads.discard(threading.current_thread())

    def _send(self, client: socket.socket, answer: dict[str, Any]) -> None:
        client.settimeout(PATIENCE)
        client.sendall(json.dumps(answer, default=repr).encode() + b"\n")
        client.settimeout(None)

    def _answer(self, line: bytes, client: socket.socket) -> dict[str, Any]:
        try:
            request = json.loads(line)
            want = request["want"]
            if want == "snapshot":
                return snapshot(int(request.get("tasks", 100)))
            if want == "trace":
                return _trace(client, float(request.get("seconds", 0)), int(request.get("room", ROOM)))
            if want == "dump":
                return dump(float(request.get("seconds", 1)))
            return {"error": f"unknown request {want!r}: ask for a snapshot, a trace or a dump"}
        except Exception as error:
            return {"error": f"{type(error).__name__}: {error}"}


def _trace(client: socket.socket, seconds: float, room: int) -> dict[str, Any]:
    """Record for `seconds` (0: no limit), or until the client sends something or hangs up."""
    with Tracing(room=room) as tracing:
        client.settimeout(seconds or None)
        with suppress(TimeoutError):
            client.recv(1, socket.MSG_PEEK)
    return tracing.document()


def _listen() -> tuple[socket.socket, Path]:
    failed: OSError | None = None
    for folder in folders():
        _sweep(folder)
        path = folder / socket_name(os.getpid())
        listening = socket.socket(socket.AF_UNIX)
        try:
            os.fchmod(listening.fileno(), 0o600)  # before bind, so that no other user can ever connect
            try:
                listening.bind(str(path))
            except OSError:
                if not _is_left_over(path):
                    raise
                path.unlink()
                listening.bind(str(path))
            listening.listen(MOST_CLIENTS)
            return listening, path
        except OSError as error:
            listening.close()
            failed = OSError(error.errno, f"{error.strerror or error}: {path}")
    assert failed is not None
    raise failed


def _sweep(folder: Path) -> None:
    """Remove the sockets of killed processes. A living process is left alone: it may have made its socket just now,
    and not listen yet."""
    for path in folder.glob(socket_name("*")):
        number = path.name.removeprefix("uringloop-").removesuffix(".sock")
        if number.isdigit() and not os.path.exists(f"/proc/{number}") and _is_left_over(path):
            with suppress(OSError):
                path.unlink()


def _is_left_over(path: Path) -> bool:
    """Whether nothing listens on the socket: it was left by a killed process with this number. A living process may
    have the same number in another container."""
    with socket.socket(socket.AF_UNIX) as other:
        try:
            other.connect(str(path))
        except ConnectionRefusedError:
            return True
        except OSError:
            pass
    return False


_opening = threading.Lock()
_serving: Inspector | None = None
_warned = False


def serve() -> Inspector:
    """Open the inspector of this process, or return the open one. Raises OSError if no socket can be made."""
    global _serving
    with _opening:
        if _serving is None:
            _serving = Inspector()
        return _serving


def serve_as_asked() -> None:
    """Open the inspector for URINGLOOP_INSPECT=1. If that fails, only warn: the program must run anyway."""
    global _warned
    try:
        serve()
    except OSError as error:
        if not _warned:
            _warned = True
            warnings.warn(f"URINGLOOP_INSPECT: no inspector: {error}", InspectorWarning, stacklevel=2)


def _after_fork_in_child() -> None:
    global _opening, _serving
    _opening = threading.Lock()
    serving, _serving = _serving, None
    if serving is not None:
        serving._left_by_fork()


os.register_at_fork(after_in_child=_after_fork_in_child)
