"""uringloop.ops: one operation, a chain of them, and one that completes again and again (needs python-liburing)."""

import contextlib
import os
import select

import liburing

import uringloop
from uringloop import ops


async def main() -> None:
    found = liburing.Statx()
    await ops.submit(liburing.io_uring_prep_statx, found, "/etc/passwd")
    print("more than nothing:", found.size > 0)

    reading, writing = os.pipe()
    async with ops.chain() as chain:  # one after the other, each only if the one before succeeded
        written = chain.submit(liburing.io_uring_prep_write, writing, b"hello", 0)
        again = chain.submit(liburing.io_uring_prep_write, writing, b" again", 0)
    print("written:", written.result(), again.result())

    polls = ops.multishot(liburing.io_uring_prep_poll_multishot, reading, select.POLLIN)
    async with contextlib.aclosing(polls):  # leaving the block ends the operation
        async for completion in polls:
            print("readable:", completion.result == select.POLLIN, os.read(reading, 100))
            break
    os.close(reading)
    os.close(writing)


if __name__ == "__main__":
    uringloop.run(main())
