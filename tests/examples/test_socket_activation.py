import signal
import socket
import subprocess
import sys

from tests.examples.programs import command_of

# What systemd does: the socket becomes descriptor 3, and the variables say so, of this very process.
AS_SYSTEMD = """
import os, sys
os.dup2(int(sys.argv[1]), 3)
os.environ.update(LISTEN_FDS="1", LISTEN_PID=str(os.getpid()))
os.execv(sys.argv[2], sys.argv[2:])
"""


def test_it_serves_on_the_socket_it_was_given() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        command = [
            sys.executable,
            "-c",
            AS_SYSTEMD,
            str(listener.fileno()),
            *command_of("socket_activation.py"),
        ]
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, text=True, pass_fds=[listener.fileno()]
        ) as process:
            with socket.create_connection(listener.getsockname(), 30) as client:  # before it listens, perhaps
                assert client.makefile().read() == "hello\n"
            assert process.stdout is not None
            assert process.stdout.readline() == "listening\n"
            process.send_signal(signal.SIGINT)
            assert process.communicate(timeout=60)[0].startswith("stopped")
            assert process.returncode == 0


def test_without_systemd_it_says_so() -> None:
    run = subprocess.run(command_of("socket_activation.py"), capture_output=True, text=True)
    assert run.returncode == 1 and "not started by a systemd socket unit" in run.stderr
