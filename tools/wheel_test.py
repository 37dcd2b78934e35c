"""Run where a wheel is installed: the loop starts, sleeps, wakes, calls a thread, answers a connection."""

import asyncio
import time

import uringloop


async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(await reader.readexactly(5))
    await writer.drain()
    writer.close()


async def main() -> None:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, uringloop.EventLoop)
    begun = loop.time()
    await asyncio.sleep(0.01)
    assert loop.time() - begun >= 0.01
    await asyncio.to_thread(time.sleep, 0.01)
    async with await asyncio.start_server(echo, "127.0.0.1", 0) as server:
        reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        writer.write(b"hello")
        assert await reader.read() == b"hello"
        writer.close()
    print(loop)


if __name__ == "__main__":
    uringloop.run(main())
