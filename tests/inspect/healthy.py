"""Tasks that wait, and that something can still wake or end: find_stuck must not report them."""

from __future__ import annotations

import asyncio
import inspect
import signal
import socket
import subprocess
import threading
import weakref
from collections.abc import Coroutine
from typing import Any

import uringloop

NEVER = 3600.0  # seconds
KEPT: list[Any] = []  # what it leads to is live


def two_locks(first: Any, second: Any) -> list[Coroutine[Any, Any, Any]]:
    met = asyncio.Barrier(2)

    async def one() -> None:
        async with first:
            await met.wait()
            async with second:
                pass

    async def other() -> None:
        async with second:
            await met.wait()
            async with first:
                pass

    return [one(), other()]


class Subscriber:
    """There can be weak references to it."""

    def __init__(self) -> None:
        self.told = asyncio.Event()


async def wait_sleep() -> None:
    await asyncio.sleep(NEVER)


async def wait_reader() -> None:
    ours, theirs = socket.socketpair()
    with theirs:
        reader, writer = await asyncio.open_connection(sock=ours)
        try:
            await reader.read()
        finally:
            writer.close()


async def wait_socket() -> None:
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    with ours, theirs:
        await asyncio.get_running_loop().sock_recv(ours, 1)


async def wait_add_reader() -> None:
    ours, theirs = socket.socketpair()
    readable = asyncio.Event()
    with ours, theirs:
        asyncio.get_running_loop().add_reader(ours, readable.set)
        try:
            await readable.wait()
        finally:
            asyncio.get_running_loop().remove_reader(ours)


async def wait_signal() -> None:
    came = uringloop.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, came.set)
    try:
        await came.wait()
    finally:
        asyncio.get_running_loop().remove_signal_handler(signal.SIGUSR1)


async def wait_thread() -> None:
    wake = threading.Event()
    try:
        await asyncio.to_thread(wake.wait)
    finally:
        wake.set()


async def wait_plain_thread() -> None:
    told, wake = asyncio.Event(), threading.Event()
    loop = asyncio.get_running_loop()

    def tell() -> None:
        wake.wait()
        loop.call_soon_threadsafe(told.set)

    thread = threading.Thread(target=tell)
    thread.start()
    try:
        await told.wait()
    finally:
        wake.set()
        thread.join()


async def wait_child() -> None:
    child = await asyncio.create_subprocess_exec("cat", stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        await child.wait()
    finally:
        child.kill()
        await child.wait()
        child._transport.close()  # type: ignore[attr-defined]


async def wait_timer() -> None:
    told = uringloop.Event()
    timer = asyncio.get_running_loop().call_later(NEVER, lambda: told.set())
    try:
        await told.wait()
    finally:
        timer.cancel()


async def wait_timeout() -> None:
    async with asyncio.timeout(NEVER):
        never = asyncio.Event()
        await never.wait()


async def wait_wait_for() -> None:
    never = asyncio.Event()
    await asyncio.wait_for(never.wait(), NEVER)


async def wait_children_of_a_timeout() -> None:
    async def child(never: Any) -> None:
        await never.wait()

    async with asyncio.timeout(NEVER), asyncio.TaskGroup() as group:
        group.create_task(child(uringloop.Event()))
        group.create_task(child(asyncio.Event()))


async def wait_children_of_gather() -> None:
    async def child(never: Any) -> None:
        await never.wait()

    async with asyncio.timeout(NEVER):
        await asyncio.gather(child(uringloop.Event()), child(asyncio.Event()))


async def wait_until_cancelled() -> None:
    await asyncio.Future()


async def wait_for_ever() -> None:
    await asyncio.get_running_loop().create_future()


async def wait_event_until_cancelled() -> None:
    await uringloop.Event().wait()


async def wait_weak() -> None:
    subscriber = Subscriber()
    KEPT.append(weakref.WeakSet([subscriber]))
    await subscriber.told.wait()


async def wait_global() -> None:
    KEPT.append(asyncio.Event())
    await KEPT[-1].wait()


async def wait_queue_of_a_live_task() -> None:
    queue: uringloop.Queue[int] = uringloop.Queue()

    async def produce(queue: uringloop.Queue[int]) -> None:
        await asyncio.sleep(NEVER)
        await queue.put(1)

    producer = asyncio.create_task(produce(queue))
    try:
        await queue.get()
    finally:
        producer.cancel()


async def wait_locks_with_a_timeout() -> None:
    async with asyncio.timeout(NEVER):
        await asyncio.gather(*two_locks(uringloop.Lock(), uringloop.Lock()))


async def wait_drain() -> None:
    ours, theirs = socket.socketpair()
    _, writer = await asyncio.open_connection(sock=ours)
    with theirs:
        writer.write(bytes(10_000_000))
        try:
            await writer.drain()
        finally:
            writer.transport.abort()


HEALTHY = [work for name, work in list(globals().items()) if inspect.iscoroutinefunction(work)]
