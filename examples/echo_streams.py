"""An echo server of asyncio's streams: echo_streams.py [PORT]; Ctrl-C ends it."""

import asyncio
import sys

import uringloop


async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(65536):
        writer.write(data)
        await writer.drain()
    writer.close()
    await writer.wait_closed()


async def main(port: int) -> None:
    server = await asyncio.start_server(echo, "127.0.0.1", port)
    print(f"listening on {server.sockets[0].getsockname()[1]}", flush=True)
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    try:
        uringloop.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else 0))
    except KeyboardInterrupt:
        print("stopped")
