"""Each private name of CPython's that the package uses stands in a table here, with a check that this Python has it."""

from __future__ import annotations

import asyncio
import functools
import importlib
import re
import sys
from pathlib import Path
from typing import Any

import pytest

import uringloop

PROJECT = Path(__file__).resolve().parents[2]
PACKAGE = PROJECT / "uringloop"
ROOM = PACKAGE / "_core/cpython"

# What objects of asyncio's and the library's are called in the sources: a private name of theirs counts also where the
# package has the same name for something of its own.
THEIRS = "protocol future waiter server task sock stream reader writer process file request executor".split()

NAME = r"(_[a-zA-Z]\w*)"
OWN = [
    rf"^\s*(?:async\s+)?(?:c?p?def)\b[^=(\n]*?\b{NAME}\s*\(",
    rf"^\s*cdef [^=\n(]*?\b{NAME}",
    rf"^\s*self\.{NAME}(?:\s*:[^=\n]+)?\s*=",
    rf"^\s*class {NAME}",
    rf"^{NAME}\b",
    rf"^    {NAME}\s*[:=]",
    rf"^\s*self\.{NAME}(?:, self\.\w+)+ =",
    rf"^\s*self\.\w+, self\.{NAME} =",
    rf"\bimport\b.* as {NAME}",
]
# The package's own, which it reads with getattr() or of what it calls as it calls something of theirs.
OURS = {"_core", "_cvars", "_line", "_where_made", "_at_close", "_named"}

# Where each private name is: a path that importlib and getattr can follow; behind a colon, what the function, or the
# class's __init__, names. Behind @, the versions that have it. One of several places is enough.
TABLE = {
    # handles and loops
    "_ThreadSafeHandle": ["asyncio.events._ThreadSafeHandle @3.14-"],
    "_asyncgen_finalizer_hook": ["asyncio.base_events.BaseEventLoop._asyncgen_finalizer_hook"],
    "_asyncgen_firstiter_hook": ["asyncio.base_events.BaseEventLoop._asyncgen_firstiter_hook"],
    "_check_callback": ["asyncio.base_events.BaseEventLoop._check_callback"],
    "_check_ssl_socket": ["asyncio.base_events._check_ssl_socket"],
    "_default_executor": ["asyncio.base_events.BaseEventLoop:_default_executor"],
    "_ensure_resolved": ["asyncio.base_events.BaseEventLoop._ensure_resolved"],
    "_executor_shutdown_called": ["asyncio.base_events.BaseEventLoop:_executor_shutdown_called"],
    "_format_callback_source": ["asyncio.format_helpers._format_callback_source"],
    "_format_handle": ["asyncio.base_events._format_handle"],
    "_get_running_loop": ["asyncio.events._get_running_loop"],
    "_iscoroutinefunction": ["asyncio.coroutines._iscoroutinefunction @3.14-"],
    "_is_coroutine": ["asyncio.coroutines._is_coroutine @-3.13"],
    "_set_coroutine_origin_tracking": ["asyncio.base_events.BaseEventLoop._set_coroutine_origin_tracking"],
    "_event_loop_policy": ["asyncio.events._event_loop_policy"],
    "_set_event_loop_policy": ["asyncio.events._set_event_loop_policy @3.14-"],
    "_set_running_loop": ["asyncio.events._set_running_loop"],
    "_DefaultEventLoopPolicy": ["asyncio.unix_events._DefaultEventLoopPolicy @3.14-"],
    "_UnixDefaultEventLoopPolicy": ["asyncio.unix_events._UnixDefaultEventLoopPolicy @-3.13"],
    "_UnixSelectorEventLoop": ["asyncio.unix_events._UnixSelectorEventLoop"],
    # tasks and futures
    "_asyncio_future_blocking": ["asyncio.futures.Future._asyncio_future_blocking"],
    "_callback": ["asyncio.events.Handle:_callback"],
    "_callbacks": ["asyncio.futures.Future._callbacks"],
    "_children": ["asyncio.tasks._GatheringFuture:_children"],
    "_fut_waiter": ["asyncio.tasks.Task._fut_waiter"],
    "_lock": ["asyncio.locks.Condition:_lock"],
    "_log_destroy_pending": ["asyncio.tasks.Task._log_destroy_pending"],
    "_loop": ["asyncio.futures.Future._loop"],
    "_register_task": ["asyncio.tasks._register_task"],
    "_unregister_task": ["asyncio.tasks._unregister_task"],
    "_tasks": ["asyncio.taskgroups.TaskGroup:_tasks"],
    "_set_result_unless_cancelled": ["asyncio.futures._set_result_unless_cancelled"],
    # servers
    "_active_count": ["asyncio.base_events.Server:_active_count", "asyncio.base_events.Server:_clients"],
    "_attach": ["asyncio.base_events.Server._attach"],
    "_backlog": ["asyncio.base_events.Server:_backlog"],
    "_clients": ["asyncio.base_events.Server:_active_count", "asyncio.base_events.Server:_clients"],
    "_detach": ["asyncio.base_events.Server._detach"],
    "_protocol_factory": ["asyncio.base_events.Server:_protocol_factory"],
    "_sockets": ["asyncio.base_events.Server:_sockets"],
    "_ssl_context": ["asyncio.base_events.Server:_ssl_context"],
    "_ssl_handshake_timeout": ["asyncio.base_events.Server:_ssl_handshake_timeout"],
    "_ssl_shutdown_timeout": ["asyncio.base_events.Server:_ssl_shutdown_timeout"],
    "_waiters": ["asyncio.base_events.Server:_waiters"],
    # transports
    "_FlowControlMixin": ["asyncio.transports._FlowControlMixin"],
    "_SendfileMode": ["asyncio.constants._SendfileMode"],
    "_UnixReadPipeTransport": ["asyncio.unix_events._UnixReadPipeTransport"],
    "_UnixWritePipeTransport": ["asyncio.unix_events._UnixWritePipeTransport"],
    "_create_transport_context": ["asyncio.sslproto._create_transport_context"],
    "_force_close": ["asyncio.sslproto._SSLProtocolTransport._force_close"],
    "_protocol_paused": ["asyncio.transports._FlowControlMixin:_protocol_paused"],
    "_set_nodelay": ["asyncio.base_events._set_nodelay"],
    "_start_tls_compatible": ["asyncio.sslproto._SSLProtocolTransport._start_tls_compatible"],
    "_sslobj": ["ssl.SSLObject._create:_sslobj"],
    "_SSLSocket": ["_ssl._SSLSocket"],
    "_msg_callback": ["ssl.SSLContext._msg_callback"],
    # subprocesses
    "_finished": ["asyncio.base_subprocess.BaseSubprocessTransport:_finished"],
    "_pending_calls": ["asyncio.base_subprocess.BaseSubprocessTransport:_pending_calls"],
    "_pipes": ["asyncio.base_subprocess.BaseSubprocessTransport:_pipes"],
    "_process_exited": ["asyncio.base_subprocess.BaseSubprocessTransport._process_exited"],
    "_waitpid_lock": ["subprocess.Popen:_waitpid_lock"],
    # streams: canaries.py tries what they do
    "_buffer": ["asyncio.streams.StreamReader:_buffer"],
    "_client_connected_cb": ["asyncio.streams.StreamReaderProtocol:_client_connected_cb"],
    "_connection_lost": ["asyncio.streams.FlowControlMixin:_connection_lost"],
    "_drain_helper": ["asyncio.streams.FlowControlMixin._drain_helper"],
    "_drain_waiters": ["asyncio.streams.FlowControlMixin:_drain_waiters"],
    "_eof": ["asyncio.streams.StreamReader:_eof"],
    "_exception": ["asyncio.streams.StreamReader:_exception"],
    "_limit": ["asyncio.streams.StreamReader:_limit"],
    "_maybe_resume_transport": ["asyncio.streams.StreamReader._maybe_resume_transport"],
    "_paused": ["asyncio.streams.StreamReader:_paused"],
    "_protocol": ["asyncio.streams.StreamWriter:_protocol"],
    "_reader": ["asyncio.streams.StreamWriter:_reader"],
    "_stream_reader": ["asyncio.streams.StreamReaderProtocol._stream_reader"],
    "_stream_reader_wr": ["asyncio.streams.StreamReaderProtocol:_stream_reader_wr"],
    "_transport": ["asyncio.streams.StreamWriter:_transport"],
    "_wait_for_data": ["asyncio.streams.StreamReader._wait_for_data"],
    "_waiter": ["asyncio.streams.StreamReader:_waiter"],
    "_wakeup_waiter": ["asyncio.streams.StreamReader._wakeup_waiter"],
    # the library and the interpreter
    "_closer": ["tempfile._TemporaryFileWrapper:_closer"],
    "_current_frames": ["sys._current_frames"],
    "_decref_socketios": ["socket.socket._decref_socketios"],
    "_getframe": ["sys._getframe"],
    "_initializing": ["importlib._bootstrap._load_unlocked:_initializing"],
    "_io_refs": ["socket.socket._io_refs"],
    "_is_gil_enabled": ["sys._is_gil_enabled @3.13-"],
    "_socket": ["_socket"],
    "_ssl": ["_ssl"],
    "_thread": ["_thread"],
}

# Private methods of asyncio's loop that the package's loop overrides: asyncio calls them.
OVERRIDDEN = """
    _check_closed _check_running _check_thread _make_datagram_transport _make_read_pipe_transport _make_socket_transport
    _make_ssl_transport _make_subprocess_transport _make_write_pipe_transport _run_once _sendfile_native
    _sock_sendfile_native
""".split()

# What C outside of the room uses of types and of the interpreter's states. Each is beyond the documented API, or is a
# slot that Cython has filled and the package fills otherwise.
C_NAME = re.compile(
    r"\b(?:_Py\w+|tp_\w+|PyThreadState_Get\w*)\b|(?<=->)(?:exc_info|exc_value|previous_item|co_\w+|ob_\w+)\b"
)
IN_C = {
    # How compiled classes are made, collected and ended.
    "_core/lifetime/guard.h": "tp_alloc tp_dealloc tp_dict tp_flags tp_free tp_name tp_new tp_traverse tp_vectorcall",
    "_core/lifetime/clearing.pxd": "tp_clear",
    # What an object refers to, as gc.get_referents() asks it, without a list for each.
    "_core/lifetime/reachability.pyx": "tp_name tp_traverse",
    "_core/loop/handle.pyx": "tp_weaklistoffset",
    "_core/transport/transport.pyx": "tp_clear tp_dictoffset",
    "_core/handoff/wait.pyx": "tp_dealloc",
    # How they are awaited.
    "_core/awaitables/coroutine.h": "tp_iter tp_iternext",
    "_core/awaitables/coroutine.pyx": "tp_as_async tp_dict tp_iternext",
    # Documented, in spite of its name: bytes_resize.pxd declares it.
    "_core/awaitables/sock_op.pyx": "_PyBytes_Resize",
    "_core/tls/direct_records.pyx": "_PyBytes_Resize",
    "_core/tls/records.pyx": "_PyBytes_Resize",
    "_core/transport/stream.pyx": "_PyBytes_Resize",
}


def sources() -> dict[str, str]:
    paths = [path for kind in ("py", "pyx", "pxd") for path in PACKAGE.rglob(f"*.{kind}")]
    return {
        str(path.relative_to(PACKAGE)): re.sub(r"#[^\n]*", "", path.read_text()) for path in sorted(paths)
    }


def own_names(texts: dict[str, str]) -> set[str]:
    return {
        name
        for text in texts.values()
        for form in OWN
        for name in re.findall(form, text, re.MULTILINE)
        if not name.startswith("__")
    }


def uses(text: str, own: set[str]) -> set[str]:
    """Private names in a source that are not the package's own."""
    found = set()
    for receiver, name in re.findall(rf"([\w)\]]+)\.{NAME}\b", text):
        if name not in own or receiver in THEIRS:
            found.add(name)
    for names in re.findall(r"^\s*from (?!uringloop)[\w.]+ import \(?([^)\n]+)", text, re.MULTILINE):
        found.update(re.findall(rf"(?:^|,) *{NAME}", names))
    found.update(re.findall(rf"^\s*c?import {NAME}", text, re.MULTILINE))
    found.update(re.findall(rf"\b(?:get|set|has|del)attr\([^,()]+, \"{NAME}\"", text))
    found.update(re.findall(rf"\[\"{NAME}\"\]", text))
    return {name for name in found if not name.startswith("__") and not name.startswith("_uringloop")}


def is_there(place: str) -> bool:
    """Whether this Python has it, or is of no version that is said to."""
    place, _, versions = place.partition(" @")
    first, last = (versions.split("-") + [""])[:2]
    if first and sys.version_info < tuple(map(int, first.split("."))):
        return True
    if last and sys.version_info[:2] > tuple(map(int, last.split("."))):
        return True
    path, _, attribute = place.partition(":")
    parts = path.split(".")
    for count in range(len(parts), 0, -1):
        try:
            found: Any = importlib.import_module(".".join(parts[:count]))
            found = functools.reduce(getattr, parts[count:], found)
            break
        except (ImportError, AttributeError):
            continue
    else:
        return False
    if not attribute:
        return True
    code = vars(found)["__init__"].__code__ if isinstance(found, type) else found.__code__
    return attribute in code.co_names


def names_in_use() -> dict[str, list[str]]:
    texts = sources()
    own = own_names(texts)
    found: dict[str, list[str]] = {}
    for file, text in texts.items():
        for name in uses(text, own) - OURS:
            found.setdefault(name, []).append(file)
    return found


def test_no_private_name_is_used_that_the_table_lacks() -> None:
    unknown = {name: files for name, files in names_in_use().items() if name not in TABLE}
    assert not unknown, "find a documented way, or add it to TABLE with the place where it is"


def test_the_table_has_no_name_that_is_not_used() -> None:
    assert TABLE.keys() <= names_in_use().keys()


@pytest.mark.parametrize("name", TABLE)
def test_this_python_has_the_private_name(name: str) -> None:
    assert any(is_there(place) for place in TABLE[name])


def test_private_methods_of_the_loop_are_overridden_as_the_table_says() -> None:
    theirs = vars(asyncio.BaseEventLoop)
    ours = {
        name
        for each in uringloop.EventLoop.__mro__
        if each.__module__.startswith("uringloop")
        for name in vars(each)
        if name.startswith("_") and not name.startswith("__") and name in theirs
    }
    assert ours == set(OVERRIDDEN)


def test_compiled_code_uses_the_c_names_in_the_table() -> None:
    found = {}
    for path in sorted(path for kind in ("pyx", "pxd", "h") for path in PACKAGE.rglob(f"*.{kind}")):
        comments = r"/\*.*?\*/" if path.suffix == ".h" else r"/\*.*?\*/|#[^\n]*"
        names = set(C_NAME.findall(re.sub(comments, "", path.read_text(), flags=re.DOTALL)))
        if names and not path.is_relative_to(ROOM):
            found[str(path.relative_to(PACKAGE))] = names
    assert found == {file: set(names.split()) for file, names in IN_C.items()}, (
        f"it belongs into {ROOM.name}/"
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x = loop._secret\n", {"_secret"}),
        ("self._own = 1\nself._inherited()\n", {"_inherited"}),
        ("self._loop = 1\nprotocol._loop.close()\n", {"_loop"}),
        ("from asyncio.events import (_a, b as _c)\nfrom uringloop.x import _d\nimport _e\n", {"_a", "_e"}),
        ('getattr(thing, "_f", None)\nthings["_g"]\nthing.__doc__\n', {"_f", "_g"}),
        ("f()._h, x[0]._i\n", {"_h", "_i"}),
    ],
)
def test_private_names_are_found(text: str, expected: set[str]) -> None:
    assert uses(text, own_names({"": text})) == expected
