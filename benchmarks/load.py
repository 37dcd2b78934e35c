"""Load: one run of the C client against a server, and the figures it gives."""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass

from benchmarks.cores import server_and_client_core
from benchmarks.native_build import native_program
from benchmarks.row import Failed
from benchmarks.server import Order, Server


@dataclass(frozen=True)
class Load:
    """What the client does; see the head of client.c."""

    mode: str = "echo"
    connections: int = 50
    depth: int = 1
    in_flight: int = 0
    warm_up: float = 0.1
    websocket: bool = False  # each message is a frame of WebSocket


def client_command(order: Order, load: Load, server: Server, seconds: float) -> list[str]:
    command = [str(native_program("client")), "-m", load.mode, "-f", order.family, "-a", server.where]
    command += ["-n", str(load.connections), "-s", str(order.size), "-d", str(load.depth)]
    command += ["-b", str(order.answers)]
    command += ["-i", str(load.in_flight), "-w", str(load.warm_up), "-t", str(seconds)]
    command += ["-P", str(server.pid), "-C", str(server_and_client_core()[1])]
    command += ["-T"] if order.tls else []
    return [*command, "-W"] if load.websocket else command


def run_load(order: Order, load: Load, server: Server, seconds: float, timeout: float) -> dict[str, float]:
    """Run the client to its end. What it says is checked: a server that loses or changes bytes has failed."""
    command = client_command(order, load, server, seconds)
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=timeout, check=False)
    except subprocess.TimeoutExpired:
        raise Failed("hung: the client got no further") from None
    if done.returncode:
        raise Failed(f"client: {done.stderr.strip()[:200]}; {server.complaint()}")
    said: dict[str, float] = json.loads(done.stdout)
    if not said["verified"]:
        raise Failed("the bytes that came back are not those that were sent")
    if not said["messages"]:
        raise Failed(f"nothing came back; {server.complaint()}")
    return said


def figures(said: dict[str, float]) -> dict[str, float]:
    """The client's counts as the metrics of a row."""
    messages, elapsed = said["messages"], said["seconds"]
    return {
        "cpu": said["server_cpu"] / messages,
        "rate": messages / elapsed,
        "bytes": said["bytes"] / elapsed,
        "p50": said["p50"],
        "p99": said["p99"],
        "server": said["server_cpu"] / elapsed,
        "client": said["client_cpu"] / elapsed,
        "lost": said["lost"],
    }
