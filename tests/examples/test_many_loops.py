import signal
import socket
import subprocess
import sys
from pathlib import Path

EXAMPLE = Path(__file__).resolve().parents[2] / "examples/many_loops.py"


def test_it_serves_until_it_is_told_to_stop() -> None:
    with subprocess.Popen([sys.executable, str(EXAMPLE)], stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        port = int(server.stdout.readline().split()[-1])
        for visit in range(1, 6):
            with socket.create_connection(("127.0.0.1", port), 10) as client:
                client.sendall(b"you\n")
                assert client.makefile().readline() == f"hello you, visit {visit}\n"
        server.send_signal(signal.SIGTERM)
        assert server.stdout.readline() == "stopped, 0 cancelled, 5 visits\n"
    assert server.returncode == 0
