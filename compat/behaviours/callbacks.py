"""call_soon and its family, across threads too."""

from __future__ import annotations

import asyncio
import contextvars
import threading
import time
from typing import Any

from compat.behaviours import check
from compat.behaviours.helpers import new_loop, soon

SOON = "call_soon(context=), call_soon_threadsafe"


@check(SOON)
async def call_soon_runs_in_order_and_context() -> None:
    loop = asyncio.get_running_loop()
    variable: contextvars.ContextVar[str] = contextvars.ContextVar("variable", default="outside")
    context = contextvars.copy_context()
    context.run(variable.set, "inside")
    seen: list[Any] = []
    loop.call_soon(seen.append, 1)
    loop.call_soon(lambda: seen.append(variable.get()), context=context)
    loop.call_soon(lambda: seen.append(variable.get()))
    cancelled = loop.call_soon(seen.append, "never")
    cancelled.cancel()
    loop.call_soon(seen.append, 2)
    await asyncio.sleep(0.01)
    assert seen == [1, "inside", "outside", 2], seen
    assert isinstance(cancelled, asyncio.Handle) and cancelled.cancelled()


@check(SOON)
async def call_soon_threadsafe_wakes_a_sleeping_loop() -> None:
    loop = asyncio.get_running_loop()
    woken: asyncio.Future[float] = loop.create_future()

    def from_outside() -> None:
        time.sleep(0.2)
        handed_in = time.monotonic()
        loop.call_soon_threadsafe(lambda: woken.set_result(time.monotonic() - handed_in))

    thread = threading.Thread(target=from_outside)
    thread.start()
    delay = await soon(woken)
    thread.join()
    assert delay < 10, delay  # and not when another timer happened to wake the loop


@check(SOON)
def call_soon_threadsafe_loses_nothing() -> None:
    loop = new_loop()
    count = 0
    threads_count, each = 4, 5000

    def step() -> None:
        nonlocal count
        count += 1
        if count == threads_count * each:
            loop.stop()

    def work() -> None:
        for _ in range(each):
            loop.call_soon_threadsafe(step)

    threads = [threading.Thread(target=work) for _ in range(threads_count)]
    for thread in threads:
        thread.start()
    loop.run_forever()
    for thread in threads:
        thread.join()
    assert count == threads_count * each
    loop.close()


@check(SOON)
def call_soon_threadsafe_between_runs_is_kept() -> None:
    loop = new_loop()
    seen: list[str] = []
    loop.run_until_complete(asyncio.sleep(0))
    thread = threading.Thread(target=loop.call_soon_threadsafe, args=(seen.append, "kept"))
    thread.start()
    thread.join()
    loop.run_until_complete(asyncio.sleep(0.01))
    assert seen == ["kept"]
    loop.close()


@check(SOON)
async def a_callback_that_reschedules_itself_starves_nobody() -> None:
    loop = asyncio.get_running_loop()
    going = True

    def again() -> None:
        if going:
            loop.call_soon(again)

    again()
    reader, writer = await open_echo()
    writer.write(b"through")
    assert await soon(reader.readexactly(7)) == b"through"
    await soon(asyncio.sleep(0.05))
    going = False
    writer.close()


async def open_echo() -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """A stream whose peer sends everything back."""

    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
        writer.close()

    server = await asyncio.start_server(echo, "127.0.0.1", 0)
    connection = await asyncio.open_connection("127.0.0.1", server.sockets[0].getsockname()[1])
    server.close()
    return connection
