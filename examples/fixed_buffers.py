"""Reading and writing past the page cache, in memory that the kernel has pinned once."""

import os
import tempfile

import uringloop
from uringloop.files import FixedBuffers


async def main() -> None:
    buffers = FixedBuffers(32, 65536)  # how many, and of how many bytes
    async with uringloop.open_file("data.bin", "r+b", direct=True) as file:
        with await buffers.lend() as view:  # waits while all are lent, first come, first served
            count = await file.pread(view, 0)  # how much of it was filled
            await file.pwrite(view[:4096], 8192)  # any part of it
    buffers.close()
    print(count, "bytes read")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        with open("data.bin", "wb") as made:
            made.write(b"first".ljust(65536))
        uringloop.run(main())
        with open("data.bin", "rb") as written:
            written.seek(8192)
            print(written.read(5).decode(), "is in two places")
        os.chdir("/")
