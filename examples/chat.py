"""A chat: each line goes to everybody else in the room. chat.py [PORT]; talk to it with `nc localhost PORT`."""

import asyncio
import sys

import uringloop

room: dict[str, asyncio.StreamWriter] = {}


async def say(name: str, text: str) -> None:
    """Send the line to all others. Waits for slow readers, so that no messages pile up in memory."""
    others = [writer for other, writer in room.items() if other != name]
    for writer in others:
        writer.write(f"{name}: {text}\n".encode())
    await asyncio.gather(*(writer.drain() for writer in others), return_exceptions=True)


async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(b"Your name? ")
    name = (await reader.readline()).decode().strip()
    if not name or name in room:
        writer.write(b"That name will not do.\n")
    else:
        room[name] = writer
        writer.write(f"{len(room)} here\n".encode())
        await say(name, "(came)")
        try:
            while line := await reader.readline():
                await say(name, line.decode(errors="replace").strip())
        finally:
            del room[name]
            await say(name, "(left)")
    writer.close()
    await writer.wait_closed()


async def main(port: int) -> None:
    server = await asyncio.start_server(talk, "127.0.0.1", port)
    print(f"listening on {server.sockets[0].getsockname()[1]}", flush=True)
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    try:
        uringloop.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else 0))
    except KeyboardInterrupt:
        print("stopped")
