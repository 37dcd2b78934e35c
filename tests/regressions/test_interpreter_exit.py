"""What a program leaves behind when the interpreter ends: an unclosed loop, or loops that run in daemon threads."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import pytest

from uringloop._core.lifetime.counters import DEBUG_BUILD

TIMES = 10
BUSY = """
    import asyncio, os, socket, sys, threading, tempfile, uringloop

    started = threading.Barrier(3)

    async def chatter(reader, writer):
        while data := await reader.read(100):
            writer.write(data)

    async def talk(path):
        reader, writer = await asyncio.open_unix_connection(path)
        while True:
            writer.write(b"x" * 50)
            await reader.read(100)

    async def ticks():
        while True:
            await asyncio.sleep(0.0001)

    async def reads():
        while True:
            async with uringloop.open_file(__file__ if "__file__" in globals() else sys.executable, "rb") as file:
                await file.read(100000)

    async def main(number):
        path = os.path.join(tempfile.mkdtemp(), "socket")
        server = await asyncio.start_unix_server(chatter, path)
        tasks = [asyncio.ensure_future(it) for it in (talk(path), talk(path), ticks(), reads())]
        tasks += [asyncio.ensure_future(asyncio.to_thread(sum, range(1000)))]
        await asyncio.sleep(0.002)
        started.wait()
        await asyncio.gather(*tasks)

    for number in range(2):
        threading.Thread(target=lambda: uringloop.run(main(number)), daemon=True).start()
    started.wait()
"""


def ends_with(code: str, *args: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-W", "ignore", "-X", "faulthandler", "-c", textwrap.dedent(code), *args]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


# What is alive in the interpreter's last collection has no modules any more.
UNCLOSED = """
import asyncio, socket, ssl, sys, uringloop
import uringloop._core.tls.transport

class Holds(asyncio.Protocol):
    def connection_made(self, transport):
        self.transport = transport

async def leave(what):
    loop = asyncio.get_running_loop()
    if what == "file":
        return [await uringloop.open_file(sys.executable, "rb")]
    if what == "tls":
        connection = uringloop._core.tls.connection.TlsConnection(
            loop, Holds(), ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT), None, False, "h", True, 10, 10)
        return [uringloop._core.tls.transport.TlsTransport(connection)]
    if what == "server":
        server = await asyncio.start_server(lambda *_: None, "127.0.0.1", 0)
        return [server, await asyncio.open_connection(*server.sockets[0].getsockname())]
    ours, theirs = socket.socketpair()
    transport, protocol = await loop.connect_accepted_socket(Holds, ours)
    transport.write(bytes(10_000_000))
    return [transport, protocol, theirs]

loop = uringloop.new_event_loop()
kept = loop.run_until_complete(leave(sys.argv[1]))
kept += [loop, kept]
asyncio.kept_to_the_end = sys.kept_to_the_end = kept  # a cycle, in modules that go last
"""


@pytest.mark.parametrize("left", ["write", "server", "file", "tls"])
def test_an_unclosed_loop_prints_no_error_when_the_interpreter_exits(engine: str, left: str) -> None:
    ended = ends_with(UNCLOSED, left)
    assert (ended.returncode, ended.stderr) == (0, "")


@pytest.mark.timeout(600)  # 31 programs
def test_a_failed_job_that_is_kept_to_the_end_prints_no_error(engine: str) -> None:
    """Its destructor, which reports the exception that was never retrieved, found logging's globals cleared."""
    code = """
        import asyncio, concurrent.futures, sys, uringloop

        async def fails():
            raise ZeroDivisionError

        with uringloop.Scheduler(1) as scheduler:
            kept = [scheduler.submit(fails)]
            concurrent.futures.wait(kept)
        kept.append(kept)
        asyncio.kept_to_the_end = sys.kept_to_the_end = kept  # a cycle, in modules that go last
    """
    ended = ends_with(code)
    assert (ended.returncode, ended.stderr) == (0, "")


@pytest.mark.skipif(not DEBUG_BUILD, reason="only a debug build has the simulated kernel")
def test_the_last_collection_may_clear_an_accepted_connection_before_its_loop(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """For some seeds, the program ends while its loop sets up the connection that it has accepted."""
    monkeypatch.setenv("URINGLOOP_ENGINE", "fake")
    for seed in range(30, 61):
        monkeypatch.setenv("URINGLOOP_SEED", str(seed))
        ended = ends_with(UNCLOSED, "server")
        assert (ended.returncode, ended.stderr) == (0, ""), f"seed {seed}"


def test_an_unclosed_transport_is_closed_even_if_its_warning_is_an_error(new_loop: object) -> None:
    """Where the warning of an unclosed transport raises, its descriptor is closed all the same."""
    code = """
        import asyncio, gc, os, socket, sys, uringloop, warnings

        async def leave():
            ours, theirs = socket.socketpair()
            await asyncio.get_running_loop().connect_accepted_socket(asyncio.Protocol, ours)
            return ours.fileno(), theirs

        warnings.simplefilter("error")
        seen = []
        sys.unraisablehook = lambda it: seen.append(it.exc_type)
        loop = uringloop.new_event_loop()
        number, theirs = loop.run_until_complete(leave())
        loop.close()
        del loop
        gc.collect()
        assert theirs.recv(1) == b""
        assert ResourceWarning in seen, seen
    """
    ended = ends_with(code)
    assert ended.returncode == 0, ended.stderr


@pytest.mark.engines("uring", "epoll")
def test_the_interpreter_exits_while_daemon_threads_run_loops(engine: str) -> None:
    for _ in range(TIMES):
        ended = ends_with(BUSY)
        assert ended.returncode == 0, f"exit {ended.returncode}\n{ended.stderr}"


@pytest.mark.engines("uring", "epoll")
def test_the_interpreter_exits_while_daemon_threads_accept_streams(engine: str) -> None:
    """A reader's new `__class__` stopped all threads, without the GIL: a thread that ended just then kept the lock."""
    code = """
        import asyncio, os, tempfile, threading, uringloop

        started = threading.Barrier(4)
        connected = threading.Event()

        async def chatter(reader, writer):
            writer.write(await reader.read(100))
            writer.close()

        async def main():
            path = os.path.join(tempfile.mkdtemp(), "socket")
            server = await asyncio.start_unix_server(chatter, path)
            started.wait()
            while True:
                reader, writer = await asyncio.open_unix_connection(path)
                writer.write(b"x" * 50)
                await reader.read(100)
                writer.close()
                connected.set()

        for _ in range(3):
            threading.Thread(target=lambda: uringloop.run(main()), daemon=True).start()
        started.wait()
        connected.wait()
    """
    for _ in range(3):
        ended = ends_with(code)
        assert ended.returncode == 0, f"exit {ended.returncode}\n{ended.stderr}"


@pytest.mark.parametrize("config", ["legacy", "isolated"])
def test_a_second_interpreter_gets_an_import_error_with_the_reason(config: str) -> None:
    """Free lists and the engines' fork hooks belong to the process: two interpreters must never share them."""
    code = """
        import sys
        import uringloop

        inner = f"import sys; sys.path[:0] = {sys.path!r}; import uringloop"
        if sys.version_info >= (3, 13):
            import _interpreters

            failed = _interpreters.exec(_interpreters.create(sys.argv[1]), inner)
            print(failed.formatted)
        else:
            import _xxsubinterpreters

            try:
                _xxsubinterpreters.run_string(
                    _xxsubinterpreters.create(isolated=sys.argv[1] == "isolated"), inner)
            except _xxsubinterpreters.RunFailedError as error:
                print(error)
    """
    ended = ends_with(code, config)
    assert ended.returncode == 0, ended.stderr
    assert "ImportError" in ended.stdout
    assert "interpreter" in ended.stdout
