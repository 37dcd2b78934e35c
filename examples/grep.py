"""Look for a word in all files of a tree, many at a time: grep.py WORD FOLDER"""

import asyncio
import os
import sys

import uringloop
from uringloop import fs


async def lines_with(word: bytes, path: str) -> list[str]:
    found = []
    async with uringloop.open_file(path, "rb") as file:
        number = 0
        async for line in file:
            number += 1
            if word in line:
                found.append(f"{path}:{number}: {line.decode(errors='replace').rstrip()}")
    return found


async def grep(word: str, folder: str, at_a_time: int = 64) -> None:
    limit = asyncio.Semaphore(at_a_time)

    async def look(path: str) -> list[str]:
        async with limit:
            return await lines_with(word.encode(), path)

    paths = [os.path.join(place, name) async for place, _, names in fs.walk(folder) for name in sorted(names)]
    for found in await asyncio.gather(*map(look, paths)):
        for line in found:
            print(line)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    uringloop.run(grep(sys.argv[1], sys.argv[2]))
