"""Run where a wheel is installed: the loop starts, sleeps, calls a thread, is woken by a socket; what the package
offers to others is found."""

import asyncio
import socket
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import uringloop


async def main() -> None:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, uringloop.EventLoop)
    begun = loop.time()
    await asyncio.sleep(0.01)
    assert loop.time() - begun >= 0.01

    ours, theirs = socket.socketpair()
    with ours, theirs:
        readable = asyncio.Event()
        loop.add_reader(ours, readable.set)
        await asyncio.to_thread(theirs.send, b"hello")
        await readable.wait()
        assert ours.recv(5) == b"hello"
        loop.remove_reader(ours)
    print(f"works: {loop!r}")


def others() -> None:
    """The command, and the plugin of pytest, by the names they are installed under."""
    said = subprocess.check_output([Path(sys.executable).with_name("uringloop"), "--version"], text=True)
    assert said == f"uringloop {uringloop.__version__}\n", said
    (plugin,) = metadata.entry_points(group="pytest11", name="uringloop.pytest_plugin")
    assert hasattr(plugin.load(), "pytest_addoption")


if __name__ == "__main__":
    uringloop.run(main())
    others()
