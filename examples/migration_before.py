"""A letter box, for asyncio: stores each line that comes, and answers when it is safe on the disk.
migration_before.py FILE [PORT]; migration_after.py is what becomes of it."""

import asyncio
import os
import sys
from contextlib import suppress
from functools import partial
from typing import IO


def append(file: IO[bytes], line: bytes) -> None:
    file.write(line)
    file.flush()
    os.fdatasync(file.fileno())


async def receive(file: IO[bytes], reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while line := await reader.readline():
        await asyncio.to_thread(append, file, line)  # the disk may take its time: in a thread
        writer.write(b"stored\n")
        await writer.drain()
    writer.close()
    await writer.wait_closed()


async def main(path: str, port: int) -> None:
    with open(path, "ab") as file:
        server = await asyncio.start_server(partial(receive, file), "127.0.0.1", port)
        print(f"listening on {server.sockets[0].getsockname()[1]}", flush=True)
        async with server:
            await server.serve_forever()


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    with suppress(KeyboardInterrupt):
        asyncio.run(main(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 0))
    print("stopped")
