"""What can be polled, and is refused where it cannot: pipes, terminals, eventfds, files."""

from __future__ import annotations

import os
import pty
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.contract


def test_pipes_can_be_watched(loop: Any) -> None:
    reading, writing = os.pipe()
    seen: list[bytes] = []
    loop.add_reader(reading, lambda: (seen.append(os.read(reading, 10)), loop.stop()))
    loop.add_writer(writing, lambda: (os.write(writing, b"x"), loop.remove_writer(writing)))
    loop.run_forever()
    assert seen == [b"x"]
    loop.remove_reader(reading)
    os.close(writing)
    loop.add_reader(reading, lambda: (seen.append(os.read(reading, 10)), loop.stop()))
    loop.run_forever()
    assert seen == [b"x", b""]
    loop.remove_reader(reading)
    os.close(reading)


def test_a_writer_is_called_when_the_pipes_reader_closes(loop: Any) -> None:
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    while True:
        try:
            os.write(writing, b"x" * 65536)
        except BlockingIOError:
            break
    loop.add_writer(writing, loop.stop)
    for _ in range(3):
        loop.call_soon(loop.stop)
        loop.run_forever()
    loop.call_soon(os.close, reading)
    loop.run_forever()
    loop.remove_writer(writing)
    os.close(writing)


def test_terminals_can_be_watched(loop: Any) -> None:
    master, slave = pty.openpty()
    loop.add_reader(master, lambda: (os.read(master, 10), loop.stop()))
    loop.call_soon(os.write, slave, b"x")
    loop.run_forever()
    loop.remove_reader(master)
    os.close(master)
    os.close(slave)


def test_eventfds_and_timerfds_can_be_watched(loop: Any) -> None:
    if not hasattr(os, "eventfd"):
        pytest.skip("no os.eventfd in this Python")
    number = os.eventfd(0, os.EFD_NONBLOCK)
    loop.add_reader(number, lambda: (os.eventfd_read(number), loop.stop()))
    loop.call_soon(os.eventfd_write, number, 1)
    loop.run_forever()
    loop.remove_reader(number)
    os.close(number)


def test_a_regular_file_and_a_directory_are_refused(loop: Any, tmp_path: Path) -> None:
    with (tmp_path / "file").open("wb") as file:
        for add in (loop.add_reader, loop.add_writer):
            with pytest.raises(PermissionError):
                add(file, print)
    directory = os.open(tmp_path, os.O_RDONLY)
    with pytest.raises(PermissionError):
        loop.add_reader(directory, print)
    os.close(directory)
