import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

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


def test_systemd_s_own_program_starts_it(tmp_path: Path) -> None:
    activate = shutil.which("systemd-socket-activate")
    if activate is None:
        pytest.skip("systemd-socket-activate is not here")
    address = tmp_path / "socket"
    command = [activate, "-l", str(address), *command_of("socket_activation.py")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None and process.stderr is not None
        while "Listening" not in (line := process.stderr.readline()):
            assert line, "it has ended"
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(str(address))  # starts the program, in the place of systemd's
            assert client.makefile().read() == "hello\n"
        process.send_signal(signal.SIGINT)
        assert process.communicate(timeout=60)[0] == "listening\nstopped\n"
