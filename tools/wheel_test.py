"""Run where a wheel is installed: the loop starts, sleeps, calls a thread, is woken by a socket."""

import asyncio
import socket

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


if __name__ == "__main__":
    uringloop.run(main())
