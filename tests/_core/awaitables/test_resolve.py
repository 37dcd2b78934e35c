"""Literals are resolved without a thread, and exactly as the C library does."""

from __future__ import annotations

import asyncio
import itertools
import socket
from collections.abc import Callable
from typing import Any

import pytest

HOSTS: list[Any] = [
    *(
        "127.0.0.1",
        "0.0.0.0",
        "255.255.255.255",
        "10.1.2.3",
        "1.2.3",
        "127.1",
        "010.0.0.1",
        "1.2.3.4 ",
        "0x7f.0.0.1",
    ),
    *(
        "::1",
        "::",
        "2001:DB8::0001",
        "::ffff:1.2.3.4",
        "fe80::1%lo",
        "fe80::1",
        "1::2::3",
        "",
        None,
        b"127.0.0.1",
    ),
    "127.0.0.1\0x",
]
PORTS: list[Any] = [
    *(
        0,
        80,
        65535,
        "80",
        "080",
        "0",
        "00080",
        "http",
        "ftp",
        "no such service",
        "",
        "-1",
        "+1",
        " 80",
        b"80",
        None,
    ),
    *(True, "99999", "٣"),
]
KINDS = [0, socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_RAW, 99]


def outcome(call: Callable[[], Any]) -> Any:
    """What a call returns, or the kind of what it raises."""
    try:
        return call()
    except Exception as error:
        return type(error), error.args if isinstance(error, OSError) else ()


@pytest.fixture
def same(loop: asyncio.AbstractEventLoop) -> Callable[..., None]:
    """Asserts that the loop and the socket module give the same answer."""

    def check(host: Any, port: Any, **options: Any) -> None:
        expected = outcome(lambda: socket.getaddrinfo(host, port, **options))
        actual = outcome(lambda: loop.run_until_complete(loop.getaddrinfo(host, port, **options)))
        assert actual == expected, (host, port, options)
        if isinstance(expected, list):
            for mine, theirs in zip(actual, expected, strict=True):
                assert [type(part) for part in mine] == [type(part) for part in theirs]

    return check


@pytest.mark.parametrize("host", HOSTS, ids=repr)
def test_every_host_and_port_is_resolved_as_by_the_socket_module(
    same: Callable[..., None], host: Any
) -> None:
    for port in PORTS:
        if host in ("1.2.3.4 ", "127.0.0.1\0x", "1::2::3") and port != 80:
            continue  # a resolver may be asked, at length
        same(host, port, flags=socket.AI_NUMERICHOST)
        same(host, port, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST)


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_every_combination_of_kinds_is_resolved_as_by_the_socket_module(
    same: Callable[..., None], host: str
) -> None:
    families = [0, socket.AF_INET, socket.AF_INET6, socket.AF_UNIX, 77]
    protocols = [0, socket.IPPROTO_TCP, socket.IPPROTO_UDP, socket.IPPROTO_ICMP, 255]
    for family, kind, proto in itertools.product(families, KINDS, protocols):
        same(host, 8080, family=family, type=kind, proto=proto)


@pytest.mark.parametrize(
    "flags",
    [
        *(
            0,
            socket.AI_PASSIVE,
            socket.AI_NUMERICSERV,
            socket.AI_CANONNAME,
            socket.AI_ADDRCONFIG,
            socket.AI_ALL,
        ),
        *(socket.AI_V4MAPPED, socket.AI_PASSIVE | socket.AI_CANONNAME, 1 << 20),
    ],
)
def test_every_flag_is_treated_as_by_the_socket_module(same: Callable[..., None], flags: int) -> None:
    for host, family in itertools.product(["127.0.0.1", "::1"], [0, socket.AF_INET, socket.AF_INET6]):
        same(host, 80, family=family, flags=flags)


@pytest.mark.parametrize(
    "options", [{"family": "x"}, {"type": 2**40}, {"proto": None}, {"flags": "x"}, {"family": -5}], ids=repr
)
def test_odd_arguments_raise_what_the_socket_module_raises(
    same: Callable[..., None], options: dict[str, Any]
) -> None:
    same("127.0.0.1", 80, **options)


@pytest.mark.parametrize("port", [-1, 65536, 2**40, 1.5, object()], ids=str)
def test_odd_ports_raise_what_the_socket_module_raises(same: Callable[..., None], port: Any) -> None:
    same("127.0.0.1", port)


def test_a_literal_is_resolved_without_suspending(loop: asyncio.AbstractEventLoop) -> None:
    with pytest.raises(StopIteration) as stopped:
        loop.getaddrinfo("127.0.0.1", 80, type=socket.SOCK_STREAM).send(None)  # type: ignore[attr-defined]
    assert stopped.value.value[0][4] == ("127.0.0.1", 80)
    assert loop._default_executor is None  # type: ignore[attr-defined]


def test_a_replaced_socket_getaddrinfo_is_the_one_that_is_asked(
    loop: asyncio.AbstractEventLoop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(socket, "getaddrinfo", lambda *args: ["replaced"])
    assert loop.run_until_complete(loop.getaddrinfo("127.0.0.1", 80)) == ["replaced"]


@pytest.mark.parametrize(
    "flags", [0, socket.NI_NUMERICHOST, socket.NI_NUMERICHOST | socket.NI_NUMERICSERV, 1 << 20]
)
@pytest.mark.parametrize(
    "address", [("127.0.0.1", 80), ("::1", 80, 0, 0), ("fe80::1", 1, 0, 1), ("name", 1), 5]
)
def test_getnameinfo_answers_as_the_socket_module(
    loop: asyncio.AbstractEventLoop, address: Any, flags: int
) -> None:
    expected = outcome(lambda: socket.getnameinfo(address, flags))
    assert outcome(lambda: loop.run_until_complete(loop.getnameinfo(address, flags))) == expected
