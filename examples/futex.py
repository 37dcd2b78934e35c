"""Wait for a word of memory to change, without a thread: a futex, awaited (needs python-liburing)."""

import asyncio
from typing import Any

import liburing

import uringloop
from uringloop import ops


async def main() -> None:
    futex = liburing.Futex()
    word: Any = futex[0]  # its stub says None
    word.state = 0

    async def waiter() -> None:
        await ops.submit(
            liburing.io_uring_prep_futex_wait,
            futex,
            0,
            liburing.FUTEX_BITSET_MATCH_ANY,
            liburing.FUTEX2_SIZE_U32,
        )
        print("woken, the word is", word.state)

    task = asyncio.create_task(waiter())
    await asyncio.sleep(0.01)
    word.state = 1
    woken = await ops.submit(
        liburing.io_uring_prep_futex_wake, futex, 1, liburing.FUTEX_BITSET_MATCH_ANY, liburing.FUTEX2_SIZE_U32
    )
    print("woke", woken)
    await task


if __name__ == "__main__":
    uringloop.run(main())
