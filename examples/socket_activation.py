"""A server that systemd starts when the first client comes: the socket is there already, as descriptor 3."""

import asyncio
import os
import socket
import sys

import uringloop

FIRST = 3  # systemd's SD_LISTEN_FDS_START


async def greet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(b"hello\n")
    writer.close()
    await writer.wait_closed()


def passed() -> socket.socket:
    """The one socket that systemd listens on for us."""
    if os.environ.get("LISTEN_PID") != str(os.getpid()) or os.environ.get("LISTEN_FDS") != "1":
        sys.exit("not started by a systemd socket unit with one socket")
    return socket.socket(fileno=FIRST)


async def main() -> None:
    server = await asyncio.start_server(greet, sock=passed())
    print("listening", flush=True)
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    try:
        uringloop.run(main())
    except KeyboardInterrupt:
        print("stopped")
