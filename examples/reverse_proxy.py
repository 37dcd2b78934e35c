"""An HTTP reverse proxy whose bodies move by splice: reverse_proxy.py BACKEND_PORT [PORT] (needs python-liburing)"""

import asyncio
import os
import re
import select
import sys
from contextlib import suppress
from socket import SHUT_WR, SOCK_NONBLOCK, SOCK_STREAM, create_server, socket

import liburing

import uringloop
from uringloop import ops

ROOM, STREAM = 65536, -1  # bytes of a head, or in a pipe; a stream has no offset
CLOSE = b"\r\nConnection: close\r\n\r\n"  # one request a connection: the end of the connection ends the body


async def splice(source: int, target: int, count: int, waited: int, event: int) -> int:
    async with ops.chain() as chain:  # one submission: once the socket is ready, move
        chain.submit(liburing.io_uring_prep_poll_add, waited, event)
        moved = chain.submit(liburing.io_uring_prep_splice, source, STREAM, target, STREAM, count, 0)
    return moved.result()


async def move(source: socket, target: socket) -> None:
    (reading, writing), come, gone = os.pipe(), source.fileno(), target.fileno()
    with open(reading, "rb"), open(writing, "wb"), suppress(OSError):
        while count := await splice(come, writing, ROOM, come, select.POLLIN):
            while count:
                count -= await splice(reading, gone, count, gone, select.POLLOUT)
        target.shutdown(SHUT_WR)


async def answer(client: socket, backend: int) -> None:
    loop, head = asyncio.get_running_loop(), b""
    with client, suppress(OSError), socket(type=SOCK_STREAM | SOCK_NONBLOCK) as server:
        while b"\r\n\r\n" not in head and len(head) < ROOM and (data := await loop.sock_recv(client, ROOM)):
            head += data
        await loop.sock_connect(server, ("127.0.0.1", backend))
        lines, _, body = head.partition(b"\r\n\r\n")
        await loop.sock_sendall(server, re.sub(rb"(?i)\r\nconnection:[^\r]*", b"", lines) + CLOSE + body)
        await asyncio.gather(move(client, server), move(server, client))


async def main(backend: int, port: int = 0) -> None:
    with create_server(("127.0.0.1", port)) as listener:
        listener.setblocking(False)
        print(f"listening on {listener.getsockname()[1]}", flush=True)
        async with asyncio.TaskGroup() as group:
            while accepted := await asyncio.get_running_loop().sock_accept(listener):
                group.create_task(answer(accepted[0], backend))


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):
        uringloop.run(main(*map(int, sys.argv[1:])) if sys.argv[1:] else sys.exit(__doc__))
    print("stopped")
