"""A handler that never returns. Healthy: a server that waits for connections."""

import asyncio
import sys


async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.readline()
    print("ready", flush=True)
    while "healthy" not in sys.argv:  # stuck here
        pass  # stuck here


async def main() -> None:
    server = await asyncio.start_server(handler, "127.0.0.1", 0)
    _, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
    writer.write(b"hello\n")
    await server.serve_forever()


asyncio.run(main())
