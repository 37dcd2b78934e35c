"""Operations of io_uring that asyncio has no name for, awaited (needs python-liburing)."""

import os
import socket
import subprocess
import tempfile

import liburing

import uringloop
from uringloop import ops


async def open_beneath() -> None:
    """No path and no link leads out of the folder."""
    with tempfile.TemporaryDirectory() as folder:
        os.symlink("/etc/hostname", f"{folder}/escape")
        place = os.open(folder, os.O_RDONLY)
        how = liburing.OpenHow()
        how.flags, how.resolve = os.O_RDONLY, liburing.RESOLVE_BENEATH
        try:
            await ops.submit(liburing.io_uring_prep_openat2, "escape", how, place)
        except OSError as error:
            print("openat2:", error.strerror)
        os.close(place)


async def wait_for_child() -> None:
    child = subprocess.Popen(["sleep", "0.05"])
    await ops.submit(
        liburing.io_uring_prep_waitid, os.P_PID, child.pid, liburing.SigsetT(), os.WEXITED | os.WNOWAIT
    )
    print("waitid: the child ended with", child.wait())


async def splice() -> None:
    """From one socket to another through a pipe, without copying."""
    (source, entry), (target, exit_) = socket.socketpair(), socket.socketpair()
    read_end, write_end = os.pipe()
    entry.sendall(b"moved, not copied")
    anywhere = -1  # a stream has no offset
    count = await ops.submit(
        liburing.io_uring_prep_splice, source.fileno(), anywhere, write_end, anywhere, 4096, 0
    )
    await ops.submit(liburing.io_uring_prep_splice, read_end, anywhere, target.fileno(), anywhere, count, 0)
    print("splice:", exit_.recv(100).decode())
    for end in (source, entry, target, exit_):
        end.close()
    os.close(read_end)
    os.close(write_end)


if __name__ == "__main__":
    for shown in (open_beneath, wait_for_child, splice):
        uringloop.run(shown())
