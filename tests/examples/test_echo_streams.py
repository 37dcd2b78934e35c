import socket

from tests.examples.programs import port_of, running


def test_it_echoes_more_than_a_buffer_holds() -> None:
    with running("echo_streams.py") as output:
        with socket.create_connection(("127.0.0.1", port_of(output)), 30) as client:
            message = bytes(range(256)) * 1024
            client.sendall(message)
            answer = b""
            while len(answer) < len(message):
                answer += client.recv(1 << 20)
            assert answer == message
