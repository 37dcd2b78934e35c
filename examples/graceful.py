"""A server that ends well: on SIGTERM it accepts no more, and answers what it has begun. graceful.py [PORT]"""

import asyncio
import signal
import sys

import uringloop

PATIENCE = 10.0  # seconds that the answers which were begun may take
answering: set[asyncio.Task[None]] = set()


async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    question = await reader.readline()
    await asyncio.sleep(0.05)  # the work
    writer.write(question.upper())
    writer.close()
    await writer.wait_closed()


def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    task = asyncio.create_task(answer(reader, writer))
    answering.add(task)
    task.add_done_callback(answering.discard)


async def main(port: int) -> None:
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    server = await asyncio.start_server(connected, "127.0.0.1", port)
    print(f"listening on {server.sockets[0].getsockname()[1]}", flush=True)
    await stop.wait()

    server.close()  # accepts no more
    finishing = len(answering)
    late: set[asyncio.Task[None]] = set()
    if answering:
        _, late = await asyncio.wait(answering, timeout=PATIENCE)
    for task in late:
        task.cancel()
    print(f"stopped: {finishing} were being answered, {len(late)} broken off")


if __name__ == "__main__":
    uringloop.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else 0))
