"""Addresses are shown exactly as the socket module shows them."""

from __future__ import annotations

import ctypes
import os
import socket
from pathlib import Path
from typing import Any

import pytest

from uringloop._core.kernel.address import from_raw, to_raw

LIBC = ctypes.CDLL(None, use_errno=True)


def raw_name(sock: socket.socket) -> bytes:
    """The sockaddr of getsockname, which the socket module hides."""
    buffer = ctypes.create_string_buffer(128)
    length = ctypes.c_uint(128)
    assert LIBC.getsockname(sock.fileno(), buffer, ctypes.byref(length)) == 0
    return buffer.raw[: length.value]


def bound(family: int, address: Any) -> socket.socket:
    sock = socket.socket(family, socket.SOCK_DGRAM)
    sock.bind(address)
    return sock


@pytest.mark.parametrize("host", ["127.0.0.1", "0.0.0.0", "127.10.200.99", "127.255.255.254"])
def test_ipv4_is_shown_as_by_the_socket_module(host: str) -> None:
    with bound(socket.AF_INET, (host, 0)) as sock:
        assert from_raw(raw_name(sock)) == sock.getsockname()
        assert to_raw(socket.AF_INET, sock.getsockname()) == raw_name(sock)


@pytest.mark.parametrize("host", ["::1", "::"])
def test_ipv6_is_shown_as_by_the_socket_module(host: str) -> None:
    with bound(socket.AF_INET6, (host, 0)) as sock:
        assert from_raw(raw_name(sock)) == sock.getsockname()
        assert to_raw(socket.AF_INET6, sock.getsockname()) == raw_name(sock)


def test_ipv6_flow_and_scope_survive() -> None:
    address = ("fe80::1:ffff", 65535, 0xABCDE, 7)
    raw = to_raw(socket.AF_INET6, address)
    assert raw is not None and from_raw(raw) == address


def test_unix_path_is_shown_as_by_the_socket_module(tmp_path: Path) -> None:
    with bound(socket.AF_UNIX, str(tmp_path / "näme")) as sock:
        assert from_raw(raw_name(sock)) == sock.getsockname()
        assert to_raw(socket.AF_UNIX, sock.getsockname()) == raw_name(sock)


def test_unix_path_that_fills_the_field_has_no_null_behind_it() -> None:
    raw = (socket.AF_UNIX).to_bytes(2, "little") + b"/" + b"x" * 107
    assert from_raw(raw) == "/" + "x" * 107


def test_abstract_name_is_bytes() -> None:
    name = b"\0uringloop-test-" + os.urandom(4).hex().encode() + b"\0tail"
    with bound(socket.AF_UNIX, name) as sock:
        assert from_raw(raw_name(sock)) == sock.getsockname() == name
        assert to_raw(socket.AF_UNIX, name) == raw_name(sock)


def test_unnamed_unix_socket_is_the_empty_string() -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
        assert from_raw(raw_name(sock)) == sock.getsockname() == ""


def test_a_missing_address_is_none() -> None:
    assert from_raw(b"") is None


@pytest.mark.parametrize(
    ("family", "address"),
    [
        (socket.AF_INET, ("localhost", 80)),
        (socket.AF_INET, ("<broadcast>", 80)),
        (socket.AF_INET, ("", 80)),
        (socket.AF_INET, ("127.1", 80)),
        (socket.AF_INET, ("127.0.0.1", 65536)),
        (socket.AF_INET, ("127.0.0.1", -1)),
        (socket.AF_INET, ("127.0.0.1", 2**70)),
        (socket.AF_INET, ("127.0.0.1", "80")),
        (socket.AF_INET, ("127.0.0.1",)),
        (socket.AF_INET, ("127.0.0.1\0x", 80)),
        (socket.AF_INET, ["127.0.0.1", 80]),
        (socket.AF_INET, (b"127.0.0.1", 80)),
        (socket.AF_INET6, ("fe80::1%lo", 80)),
        (socket.AF_INET6, ("::1", 80, 2**20, 0)),
        (socket.AF_INET6, ("::1", 80, 0, 2**32)),
        (socket.AF_UNIX, "x" * 108),
        (socket.AF_UNIX, ""),
        (socket.AF_UNIX, 5),
        (socket.AF_NETLINK, (0, 0)),
    ],
)
def test_names_are_left_to_the_socket_module(family: int, address: Any) -> None:
    assert to_raw(family, address) is None
