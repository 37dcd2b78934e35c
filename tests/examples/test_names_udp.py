import socket

from tests.examples.programs import port_of, running


def test_it_answers_with_the_address() -> None:
    with running("names_udp.py") as output, socket.socket(type=socket.SOCK_DGRAM) as client:
        client.settimeout(30)
        client.connect(("127.0.0.1", port_of(output)))
        client.send(b"mars")
        assert client.recv(100) == b"mars 10.0.0.4"
        client.send(b"pluto")
        assert client.recv(100) == b"pluto is not known"
