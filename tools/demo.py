"""An echo server under load, on uringloop and on other asyncio loops, side by side.

    python tools/demo.py [--seconds 25] [--connections 64] [--size 1024] [--loops asyncio,uvloop,uringloop]

Every loop serves in a process of its own, on the first CPU; the load, demo_load.c compiled here, on the last.
The rounds of the loops are interleaved, so that a noisy moment of the machine meets all of them.
"""

import argparse
import asyncio
import importlib
import json
import os
import shlex
import socket
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from benchmarks.served import accept_readable

HERE = Path(__file__).resolve().parent
KINDS = {
    "readers": "add_reader on plain sockets",
    "protocol": "asyncio.Protocol",
    "streams": "StreamReader and StreamWriter",
}
TICKS = os.sysconf("SC_CLK_TCK")
CPUS = sorted(os.sched_getaffinity(0))


# --- the server: plain asyncio code, whatever the loop


class Echo(asyncio.Protocol):
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)  # uvloop's is none by its class

    def data_received(self, data: bytes) -> None:
        self.transport.write(data)


async def echo_stream(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(65536):
        writer.write(data)
        await writer.drain()
    writer.close()


async def serve_kind(kind: str, listener: socket.socket) -> object:
    loop = asyncio.get_running_loop()
    if kind == "readers":
        listener.setblocking(False)
        loop.add_reader(listener, accept_readable, loop, listener)
        return listener
    if kind == "protocol":
        return await loop.create_server(Echo, sock=listener)
    return await asyncio.start_server(echo_stream, sock=listener)


async def serve() -> None:
    """Says in one line of JSON where each kind is served, or why it is not."""
    ports: dict[str, int | str] = {}
    servers = []
    for kind in KINDS:
        listener = socket.create_server(("127.0.0.1", 0), backlog=1024)
        try:
            servers.append(await serve_kind(kind, listener))
            ports[kind] = listener.getsockname()[1]
        except Exception as error:
            ports[kind] = f"{type(error).__name__}: {error}"
    print(json.dumps(ports), flush=True)
    await asyncio.Event().wait()


def run_server(name: str) -> None:
    os.sched_setaffinity(0, CPUS[:1])
    module = importlib.import_module(name)
    with asyncio.Runner(loop_factory=module.new_event_loop) as runner:
        runner.run(serve())


# --- the comparison


@dataclass
class Server:
    name: str
    process: subprocess.Popen[str]
    ports: dict[str, int | str]  # of each kind, or why it is not served

    def cpu_seconds(self) -> float:
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / TICKS


@dataclass
class Round:
    rate: float
    median: int
    slow: int
    cpu: float  # of the server, microseconds a request


def start(name: str) -> Server | str:
    """The running server, or why there is none."""
    with tempfile.TemporaryFile("w+") as errors:
        command = [sys.executable, __file__, "--serve", name]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True)
        assert process.stdout is not None
        try:
            line = process.stdout.readline()
        except KeyboardInterrupt:
            process.kill()
            raise
        errors.seek(0)
        said = errors.read().strip()
        if line:
            if said:
                print(f"{name} says: {said}\n")
            return Server(name, process, json.loads(line))
        process.communicate()
        return said.splitlines()[-1] if said else f"ended with status {process.returncode}"


def compile_load(folder: Path) -> Path:
    load = folder / "demo_load"
    compiler = shlex.split(os.environ.get("CC", "cc"))
    subprocess.run([*compiler, "-O2", "-o", load, HERE / "demo_load.c"], check=True)
    return load


def measure(load: Path, server: Server, kind: str, options: argparse.Namespace, seconds: float) -> Round:
    before = server.cpu_seconds()
    command = [load, server.ports[kind], options.connections, options.size, seconds]
    run = subprocess.run(list(map(str, command)), stdout=subprocess.PIPE, text=True, check=True)
    requests, measured, median, slow = run.stdout.split()
    rate = max(int(requests), 1) / float(measured)  # none: the machine was busy elsewhere all the time
    # the warm-up used CPU too, at the same rate
    cpu = (server.cpu_seconds() - before) / (rate * (seconds + 0.2))
    return Round(rate, int(median), int(slow), cpu * 1e6)


def rows(results: dict[str, list[Round]]) -> Iterator[str]:
    base = statistics.median(each.rate for each in results["asyncio"]) if "asyncio" in results else None
    yield f"  {'':<10}{'requests/s':>12}{'median µs':>12}{'99 % µs':>10}{'CPU µs/req':>12}{'':>12}"
    for name, rounds in results.items():
        rate = statistics.median(each.rate for each in rounds)
        median, slow = (
            statistics.median(getattr(each, key) for each in rounds) for key in ("median", "slow")
        )
        cpu = statistics.median(each.cpu for each in rounds)
        ratio = f"{rate / base:.2f} x asyncio" if base else ""
        yield f"  {name:<10}{rate:>12,.0f}{median:>12,.0f}{slow:>10,.0f}{cpu:>12.1f}   {ratio}"


def progress(text: str) -> None:
    if sys.stderr.isatty():
        print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)


def compare(servers: list[Server], options: argparse.Namespace) -> None:
    share = options.seconds / (len(servers) * len(KINDS))
    rounds = max(1, min(5, int(share / 0.7)))
    seconds = max(0.1, share / rounds - 0.25)
    with tempfile.TemporaryDirectory() as folder:
        load = compile_load(Path(folder))
        os.sched_setaffinity(0, CPUS[-1:])  # which the load inherits
        for kind, title in KINDS.items():
            serving = [server for server in servers if isinstance(server.ports[kind], int)]
            results: dict[str, list[Round]] = {server.name: [] for server in serving}
            for number in range(rounds):
                progress(f"{title}: round {number + 1} of {rounds}")
                for server in serving:
                    results[server.name].append(measure(load, server, kind, options, seconds))
            progress("")
            print(f"{title}, {options.connections} connections, {options.size} bytes")
            print("\n".join(rows(results)))
            for server in servers:
                if server not in serving:
                    print(f"  {server.name:<10} does not serve this: {server.ports[kind]}")
            print(flush=True)
    print("Medians of the rounds. Every message is answered before its connection sends the next one.")


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=25, help="of measuring, in all")
    parser.add_argument("--connections", type=int, default=64)
    parser.add_argument("--size", type=int, default=1024, help="bytes of a message")
    parser.add_argument("--loops", default="asyncio,uvloop,uringloop")
    parser.add_argument("--serve", metavar="LOOP", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.seconds <= 0 or options.connections < 1 or options.size < 1:
        parser.error("seconds, connections and size are more than nothing")
    if options.serve:
        run_server(options.serve)
        return 0

    print(f"Python {sys.version.split()[0]}, Linux {os.uname().release}, {len(CPUS)} CPUs\n", flush=True)
    started: dict[str, Server | str] = {}
    try:
        for name in options.loops.split(","):
            started[name] = server = start(name)
            if isinstance(server, str):
                print(f"{name} is not compared, its server did not start: {server}\n")
        servers = [server for server in started.values() if isinstance(server, Server)]
        if servers:
            compare(servers, options)
    finally:
        for server in started.values():
            if isinstance(server, Server):
                server.process.kill()
                server.process.communicate()
    return 1 if not servers or isinstance(started.get("uringloop"), str) else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit("\ninterrupted")
