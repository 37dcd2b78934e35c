"""Open, read, write at places, and the operations on paths: files_tour.py FOLDER"""

import asyncio
import os
import sys

import uringloop
from uringloop import fs


async def main(folder: str) -> None:
    cache = os.path.join(folder, "cache")
    await fs.makedirs(cache, exist_ok=True)
    await fs.atomic_write(f"{cache}/settings.json", "{}\n")  # the old file, or the new one; never half of it

    async with uringloop.open_file(f"{cache}/log.txt", "w") as file:
        await file.writelines(["one\n", "two\n"])
    async with uringloop.open_file(f"{cache}/log.txt") as file:
        async for line in file:
            print(line, end="")

    data = await uringloop.open_file(f"{cache}/data.bin", "w+b")
    await data.pwrite(bytes(range(256)) * 64, 0)
    blocks = await asyncio.gather(*(data.pread(4096, offset) for offset in range(0, 16384, 4096)))
    await data.close()
    print(len(blocks), "blocks, read at once;", (await fs.stat(f"{cache}/data.bin")).st_size, "bytes")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    uringloop.run(main(sys.argv[1]))
