"""What a loop is doing: the operations it has in the kernel, and what it counted."""

import asyncio
import socket

import uringloop


async def main() -> None:
    ours, theirs = socket.socketpair()
    reader, writer = await asyncio.open_connection(sock=ours)
    waiting = asyncio.create_task(reader.readline(), name="who waits for a line")
    await asyncio.sleep(0.001)

    loop = asyncio.get_running_loop()
    assert isinstance(loop, uringloop.EventLoop)
    for operation in loop.operations():  # what is in the kernel just now, and for whom
        print(operation)
    print(loop.statistics().turns, "turns so far")

    theirs.sendall(b"a line\n")
    print((await waiting).decode(), end="")
    writer.close()
    await writer.wait_closed()
    theirs.close()


if __name__ == "__main__":
    uringloop.run(main())
