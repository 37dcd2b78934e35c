import signal
import socket

from tests.examples.programs import port_of, running


def test_requests_sent_before_sigterm_are_answered() -> None:
    with running("graceful.py", end=signal.SIGTERM) as output:
        port = port_of(output)
        with socket.create_connection(("127.0.0.1", port), 30) as client:
            client.sendall(b"hello\n")
            assert client.makefile().read() == "HELLO\n"
