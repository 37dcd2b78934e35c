"""Serve the files of a folder over HTTP, by sendfile: static_files.py FOLDER [PORT]; Ctrl-C ends it."""

import asyncio
import os
import sys
from urllib.parse import unquote

import uringloop


async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, folder: str) -> None:
    try:
        method, target, _ = (await reader.readline()).decode("latin-1").split()
        while (await reader.readline()).strip():
            pass  # headers
        path = os.path.realpath(os.path.join(folder, unquote(target).lstrip("/")))
        if method != "GET" or os.path.commonpath([path, folder]) != folder:
            raise PermissionError
        async with uringloop.open_file(path, "rb") as file:
            length = await file.seek(0, os.SEEK_END)
            writer.write(b"HTTP/1.0 200 OK\r\nContent-Length: %d\r\n\r\n" % length)
            with open(file.fileno(), "rb", closefd=False) as plain:
                await asyncio.get_running_loop().sendfile(writer.transport, plain, 0, length)
    except (OSError, ValueError):
        writer.write(b"HTTP/1.0 404 Not Found\r\nContent-Length: 0\r\n\r\n")
    writer.close()
    await writer.wait_closed()


async def main(folder: str, port: int) -> None:
    server = await asyncio.start_server(
        lambda reader, writer: answer(reader, writer, os.path.realpath(folder)), "127.0.0.1", port
    )
    print(f"listening on {server.sockets[0].getsockname()[1]}", flush=True)
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    try:
        uringloop.run(main(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 0))
    except KeyboardInterrupt:
        print("stopped")
