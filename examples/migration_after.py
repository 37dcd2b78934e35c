"""The letter box of migration_before.py, on uringloop: its last line is what had to change; the file is a gift.
migration_after.py FILE [PORT]"""

import asyncio
import sys
from contextlib import suppress
from functools import partial

import uringloop
from uringloop.files import ByteFile


async def receive(file: ByteFile, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while line := await reader.readline():
        await file.write(line)
        await file.fdatasync()  # in the kernel: no thread
        writer.write(b"stored\n")
        await writer.drain()
    writer.close()
    await writer.wait_closed()


async def main(path: str, port: int) -> None:
    async with uringloop.open_file(path, "ab") as file:
        server = await asyncio.start_server(partial(receive, file), "127.0.0.1", port)
        print(f"listening on {server.sockets[0].getsockname()[1]}", flush=True)
        async with server:
            await server.serve_forever()


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    with suppress(KeyboardInterrupt):
        uringloop.run(main(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 0))
    print("stopped")
