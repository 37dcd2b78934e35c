"""Write, then sync: the kernel begins the second when the first is done (needs python-liburing)."""

import tempfile

import liburing

import uringloop
from uringloop import ops


async def main() -> None:
    with tempfile.TemporaryFile() as file:
        async with ops.chain() as chain:
            written = chain.submit(liburing.io_uring_prep_write, file.fileno(), b"kept", 0)
            synced = chain.submit(liburing.io_uring_prep_fsync, file.fileno())
        print("written:", written.result(), "synced:", synced.result() == 0)
        try:
            async with ops.chain() as chain:
                chain.submit(liburing.io_uring_prep_write, 1 << 20, b"no such descriptor", 0)
                chain.submit(liburing.io_uring_prep_fsync, file.fileno())
        except OSError as error:
            print("not synced:", error.strerror)


if __name__ == "__main__":
    uringloop.run(main())
