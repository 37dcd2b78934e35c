"""A write that is on the disk when it returns: write and fsync linked, two operations handed over at once, the second
begun by the kernel itself and only if the first succeeded (needs python-liburing)."""

import os
import tempfile

import liburing

import uringloop
from uringloop import ops


async def durable_write(fd: int, data: bytes, offset: int) -> int:
    async with ops.chain() as chain:
        written = chain.submit(liburing.io_uring_prep_write, fd, data, offset)
        chain.submit(liburing.io_uring_prep_fsync, fd)
    return written.result()


async def main() -> None:
    with tempfile.TemporaryFile() as place:
        print(await durable_write(place.fileno(), b"kept", 0), "bytes are on the disk")
    with open(os.devnull, "rb") as place:
        try:
            await durable_write(place.fileno(), b"lost", 0)
        except OSError as error:
            print("not written, and no fsync:", error.strerror)


if __name__ == "__main__":
    uringloop.run(main())
