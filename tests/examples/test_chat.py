import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.examples.programs import port_of, running


@contextmanager
def guest(port: int, name: str) -> Iterator[Any]:
    with socket.create_connection(("127.0.0.1", port), 30) as connection, connection.makefile("rw") as lines:
        print(name, file=lines, flush=True)
        yield lines


def test_each_hears_the_others_and_not_itself() -> None:
    with running("chat.py") as output:
        port = port_of(output)
        with guest(port, "ann") as ann:
            assert ann.readline() == "Your name? 1 here\n"
            with guest(port, "bob") as bob:
                assert bob.readline() == "Your name? 2 here\n"
                assert ann.readline() == "bob: (came)\n"
                print("hello", file=bob, flush=True)
                assert ann.readline() == "bob: hello\n"
                print("who is there?", file=ann, flush=True)
                assert bob.readline() == "ann: who is there?\n"
            assert ann.readline() == "bob: (left)\n"


def test_a_name_is_taken_once() -> None:
    with running("chat.py") as output:
        port = port_of(output)
        with guest(port, "ann") as ann:
            assert ann.readline() == "Your name? 1 here\n"
            with guest(port, "ann") as other:
                assert other.readline() == "Your name? That name will not do.\n"
