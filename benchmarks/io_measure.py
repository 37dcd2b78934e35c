"""How a sample of an I/O row is taken: start the server, run the load, read the figures."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import time

from benchmarks.candidate import Candidate
from benchmarks.cores import server_and_client_core
from benchmarks.load import Load, client_command, figures, run_load
from benchmarks.row import Failed, Row, Skipped
from benchmarks.server import Order, Server

WRK_SECONDS = 1


def measure_load(row: Row, candidate: Candidate, seconds: float) -> dict[str, float]:
    order, load = Order(**row.arguments["order"]), Load(**row.arguments["load"])
    with Server(candidate, order) as server:
        return figures(run_load(order, load, server, seconds, row.timeout + seconds))


def measure_idle(row: Row, candidate: Candidate, seconds: float) -> dict[str, float]:
    """Resident memory per idle connection, and what the server burns while all of them are silent for
    a second.
    """
    order, load = Order(**row.arguments["order"]), Load(**row.arguments["load"])
    with Server(candidate, order) as server:
        time.sleep(0.2)
        before = server.resident()
        command = client_command(order, load, server, seconds)
        client = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        try:
            assert client.stdout is not None
            if not client.stdout.readline():
                raise Failed("the client could not connect")
            settle(server)
            memory = (server.resident() - before) / load.connections
            cpu = server.cpu()
            time.sleep(1.0)
            return {"memory": max(memory, 1.0), "cpu": server.cpu() - cpu}
        finally:
            client.kill()
            client.communicate()


def settle(server: Server) -> None:
    """Wait until the server has accepted everything: until it burns nothing more."""
    deadline = time.monotonic() + 20
    cpu = server.cpu()
    while time.monotonic() < deadline:
        time.sleep(0.25)
        now = server.cpu()
        if now - cpu < 0.01:
            return
        cpu = now


def measure_web(row: Row, candidate: Candidate, seconds: float) -> dict[str, float]:
    wrk = shutil.which("wrk")
    if wrk is None:
        raise Skipped("wrk is not installed")
    with Server(candidate, Order(row.arguments["kind"])) as server:
        url = f"http://127.0.0.1:{server.where}/"
        run_wrk(wrk, url, row.timeout)  # the first one warms up
        cpu = server.cpu()
        text = run_wrk(wrk, url, row.timeout)
        cpu = server.cpu() - cpu
    requests = re.search(r"(\d+) requests in ([\d.]+)s", text)
    if requests is None or not int(requests[1]) or "Non-2xx" in text:
        raise Failed(f"wrk: {text.strip()[-200:]}")
    return {
        "rate": int(requests[1]) / float(requests[2]),
        "cpu": cpu / int(requests[1]),
        "p50": wrk_latency(text, "50%"),
        "p99": wrk_latency(text, "99%"),
    }


def run_wrk(wrk: str, url: str, timeout: float) -> str:
    core = server_and_client_core()[1]
    command = [wrk, "-t1", "-c50", f"-d{WRK_SECONDS}s", "--latency", url]
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
            preexec_fn=lambda: os.sched_setaffinity(0, {core}),
        )
    except subprocess.TimeoutExpired:
        raise Failed("hung under wrk") from None
    return done.stdout + done.stderr


def wrk_latency(text: str, percentile: str) -> float:
    found = re.search(rf"{percentile}\s+([\d.]+)(us|ms|s)", text)
    if found is None:
        return 0.0
    return float(found[1]) * {"us": 1e-6, "ms": 1e-3, "s": 1.0}[found[2]]
