"""The rows with a server: echo in all its forms, bulk, broadcast, connections, UDP, TLS, HTTP, idle
connections.
"""

from __future__ import annotations

from typing import Any

from benchmarks.candidate import AIOFASTNET, EPOLL_ENGINE
from benchmarks.fresh import fresh_rows
from benchmarks.io_measure import measure_idle, measure_load
from benchmarks.row import BYTES, CLIENT, CPU, CPU_FIRST, MEMORY, RATE_FIRST, Metric, Row

BARE_C = ("c-epoll", "c-uring")

SIZES = {"64": 64, "1k": 1024, "10k": 10 * 1024, "100k": 100 * 1024}
CONNECTIONS = (1, 50, 1000)
KINDS = {"protocol": "protocol", "buffered": "buffered protocol", "streams": "streams", "sock": "sock_*"}
QUICK_ECHO = {"tcp-protocol-1k-c50", "tcp-streams-1k-c50", "tcp-sock-1k-c50"}


def load_row(
    name: str, group: str, title: str, order: dict[str, Any], load: dict[str, Any], **options: Any
) -> Row:
    settings: dict[str, Any] = {"metrics": CPU_FIRST, "seconds": 0.3, **options}
    return Row(name, group, title, arguments={"order": order, "load": load}, measure=measure_load, **settings)


def echo_rows() -> list[Row]:
    """Every way of writing an echo server, TCP and Unix, four sizes, three numbers of connections."""
    rows = []
    for family in ("tcp", "unix"):
        for kind, words in KINDS.items():
            for label, size in SIZES.items():
                for connections in CONNECTIONS:
                    name = f"{family}-{kind}-{label}-c{connections}"
                    title = f"{family} {words} {label}, {connections} conn., CPU/msg"
                    order = {"kind": kind, "family": family, "size": size}
                    quick = name in QUICK_ECHO
                    options: dict[str, Any] = {"quick": quick, "native": BARE_C}
                    if quick:
                        options["extra_candidates"] = (EPOLL_ENGINE,)
                    elif kind in ("protocol", "streams"):
                        options["extra_candidates"] = AIOFASTNET
                    rows.append(load_row(name, "echo", title, order, {"connections": connections}, **options))
    return rows


def reader_rows() -> list[Row]:
    """Plain sockets and add_reader, which other libraries' own input and output is made of."""
    return [
        load_row(
            f"readers-c{connections}",
            "readers",
            f"add_reader 1k, {connections} conn., CPU/msg",
            {"kind": "readers"},
            {"connections": connections},
            native=(*BARE_C, "c-epoll-in-ring"),
        )
        for connections in (1, 64, 1000)
    ]


def special_rows() -> list[Row]:
    """One connection ping-pong, work per message, pipelining."""
    one = {"kind": "protocol", "size": 64}
    busy = ("uringloop-busy", "c-uring-busy")
    return [
        load_row(
            "ping-pong",
            "special",
            "ping-pong on one TCP connection, 64 B",
            one,
            {"connections": 1},
            metrics=RATE_FIRST,
            native=BARE_C,
            extra_candidates=busy,
        ),
        load_row(
            "work",
            "special",
            "echo with 20 us of Python per message, 1 KB",
            {"kind": "work"},
            {},
            metrics=RATE_FIRST,
            native=BARE_C,
        ),
        load_row(
            "pipelined-c50",
            "special",
            "64 B, 50 conn., 32 in flight each, CPU/msg",
            one,
            {"depth": 32},
            native=BARE_C,
        ),
        load_row(
            "pipelined-c1",
            "special",
            "64 B, 1 conn., 100 on the way, CPU/msg",
            one,
            {"connections": 1, "depth": 100},
            native=BARE_C,
        ),
    ]


def settled_rows() -> list[Row]:
    """Echo by a process that has freed a large block before, as a program may have that runs for a while."""
    return [
        load_row(
            f"settled-{label}",
            "special",
            f"{label}, 50 conn., a large block freed before, CPU/msg",
            {"kind": "protocol", "size": SIZES[label], "settled": True},
            {},
            native=BARE_C,
        )
        for label in ("1k", "10k", "100k")
    ]


def transfer_rows() -> list[Row]:
    """Bulk one way, broadcast, connections made and closed, UDP."""
    bulk = (BYTES, CPU, CLIENT)
    rows = []
    load: dict[str, Any]
    for connections in (1, 10):
        load = {"mode": "send", "connections": connections}
        title = f"bulk to the server, {connections} conn."
        order = {"kind": "sink", "size": 65536}
        rows.append(
            load_row(
                f"bulk-in-c{connections}", "transfer", title, order, load, metrics=bulk, native=("c-epoll",)
            )
        )
        load = {"mode": "receive", "connections": connections}
        title = f"bulk from the server, {connections} conn."
        order = {"kind": "source", "size": 65536}
        rows.append(load_row(f"bulk-out-c{connections}", "transfer", title, order, load, metrics=bulk))
    rows.append(broadcast_row("broadcast", "transfer", 1000))
    order, load = {"kind": "protocol", "size": 64}, {"mode": "connect"}
    title = "connect, echo, close"
    rows.append(
        load_row("connections", "transfer", title, order, load, metrics=(*RATE_FIRST, CLIENT), native=BARE_C)
    )
    for label, size in {"64": 64, "1k": 1024}.items():
        order = {"kind": "udp", "family": "udp", "size": size}
        metrics = (*RATE_FIRST, Metric("lost", "", higher_is_better=False, compared=False))
        title = f"UDP echo {label}, 50 sockets"
        rows.append(
            load_row(f"udp-{label}", "transfer", title, order, {}, metrics=metrics, native=("c-epoll",))
        )
    order = {"kind": "udp", "family": "udp", "size": 1024, "answers": 32}
    metrics = (*RATE_FIRST, Metric("lost", "", higher_is_better=False, compared=False))
    title = "UDP, 32 answers of 1 KB each, 10 sockets"
    rows.append(load_row("udp-burst", "transfer", title, order, {"connections": 10}, metrics=metrics))
    return rows


def broadcast_row(name: str, group: str, connections: int) -> Row:
    load = {"mode": "broadcast", "connections": connections, "warm_up": 0.2}
    title = f"broadcast of 64 B to {connections:,}, per delivery"
    metrics = RATE_FIRST if group == "transfer" else CPU_FIRST
    order = {"kind": "broadcast", "size": 64, "connections": connections}
    return load_row(name, group, title, order, load, metrics=metrics, timeout=60)


def tls_rows() -> list[Row]:
    rows = []
    load: dict[str, Any]
    for kind in ("protocol", "streams"):
        for label in ("1k", "10k", "100k"):
            order = {"kind": kind, "size": SIZES[label], "tls": True}
            title = f"TLS {KINDS[kind]} {label}, 50 conn., CPU/msg"
            load = {"connections": 50, "warm_up": 0.4}
            metrics = (*CPU_FIRST, CLIENT)
            name = f"tls-{kind}-{label}"
            rows.append(
                load_row(
                    name,
                    "tls",
                    title,
                    order,
                    load,
                    metrics=metrics,
                    extra_candidates=(*AIOFASTNET, EPOLL_ENGINE),
                )
            )
    order, load = {"kind": "protocol", "size": 64, "tls": True}, {"mode": "connect"}
    title, metrics = "TLS connect, echo, close", (*RATE_FIRST, CLIENT)
    rows.append(load_row("tls-handshakes", "tls", title, order, load, metrics=metrics))
    return rows


def scale_rows() -> list[Row]:
    """The curves: cost per message and per delivery as there are more connections, memory of idle ones."""
    rows = []
    load: dict[str, Any]
    for connections in (1, 10, 100, 1000, 10_000):
        order = {"kind": "protocol", "size": 1024}
        load = {"connections": connections, "in_flight": 50, "warm_up": 0.3}
        title = f"1 KB echo, {connections:,} conn. (50 busy), CPU/msg"
        once = 2 if connections >= 10_000 else 0
        name = f"scale-c{connections}"
        rows.append(load_row(name, "scale", title, order, load, native=BARE_C, timeout=90, max_rounds=once))
    rows += [broadcast_row(f"fan-out-{count}", "scale", count) for count in (10, 100, 1000, 9_000)]
    idle_metrics = (MEMORY, Metric("cpu", "s", higher_is_better=False, compared=False))
    order, load = {"kind": "protocol"}, {"mode": "idle", "connections": 9_000}
    rows += [
        Row(
            f"idle-{connections}",
            "scale",
            f"{connections:,} idle connections, memory of each",
            idle_metrics,
            arguments={"order": order, "load": {**load, "connections": connections}},
            measure=measure_idle,
            timeout=90,
            max_rounds=2,
            extra_candidates=(EPOLL_ENGINE,),
        )
        for connections in (1000, 10_000)
    ]
    return rows


def io_rows() -> list[Row]:
    makers = (
        echo_rows,
        reader_rows,
        fresh_rows,
        special_rows,
        settled_rows,
        transfer_rows,
        tls_rows,
        scale_rows,
    )
    return [row for make in makers for row in make()]
