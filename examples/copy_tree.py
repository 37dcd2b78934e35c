"""Copy a folder, many files at a time: copy_tree.py FROM TO"""

import asyncio
import os
import sys

import uringloop
from uringloop import fs


async def copy_tree(source: str, target: str, at_a_time: int = 32) -> int:
    limit = asyncio.Semaphore(at_a_time)
    copied = 0

    async def copy(name: str, other: str) -> None:
        nonlocal copied
        async with limit:
            await fs.copyfile(name, other)
            copied += 1

    async with asyncio.TaskGroup() as group:
        async for folder, _, files in fs.walk(source):
            there = os.path.join(target, os.path.relpath(folder, source))
            await fs.makedirs(there, exist_ok=True)
            for file in files:
                group.create_task(copy(os.path.join(folder, file), os.path.join(there, file)))
    return copied


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    print(uringloop.run(copy_tree(sys.argv[1], sys.argv[2])), "files copied")
