"""The program before and after do the same, and the page shows all that had to change."""

import socket
from pathlib import Path

import pytest

from tests.examples.programs import port_of, running


@pytest.mark.parametrize("name", ["migration_before.py", "migration_after.py"])
def test_lines_are_on_the_disk_when_they_are_answered(name: str, tmp_path: Path) -> None:
    path = tmp_path / "letters"
    with running(name, path) as output, socket.create_connection(("127.0.0.1", port_of(output))) as client:
        with client.makefile("rwb", 0) as letters:
            for count in (1, 2):
                letters.write(b"a line\n")
                assert letters.readline() == b"stored\n"
                assert path.read_bytes() == b"a line\n" * count
