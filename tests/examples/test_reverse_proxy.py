import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from tests.examples.programs import port_of, running

pytest.importorskip("liburing", reason="python-liburing is an extra, of x86-64")
LARGE = bytes(range(256)) * 4096  # more than a pipe holds


class Backend(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(201)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Seen", self.headers["Connection"])
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments: object) -> None:
        pass


@pytest.fixture
def backend() -> Iterator[int]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Backend) as server:
        thread = threading.Thread(target=server.serve_forever, args=[0.01])
        thread.start()
        yield server.server_address[1]
        server.shutdown()
        thread.join()


def test_bodies_pass_both_ways(backend: int) -> None:
    with running("reverse_proxy.py", backend) as output:
        place = f"http://127.0.0.1:{port_of(output)}/"
        for body in (LARGE, b"", b"short"):
            with urllib.request.urlopen(place, body, timeout=30) as answer:
                assert (answer.status, answer.headers["Seen"]) == (201, "close")
                assert answer.read() == body


def test_a_backend_that_is_away_ends_the_connection() -> None:
    with running("reverse_proxy.py", 1) as output:
        with pytest.raises(OSError, match=r"without response|reset"):
            urllib.request.urlopen(f"http://127.0.0.1:{port_of(output)}/", timeout=30)
