"""Count the words of text files, all at once, without a thread: read_lines.py FILE..."""

import asyncio
import sys

import uringloop


async def count(path: str) -> int:
    words = 0
    async with uringloop.open_file(path, errors="replace") as file:
        async for line in file:
            words += len(line.split())
    return words


async def main(paths: list[str]) -> None:
    for path, words in zip(paths, await asyncio.gather(*map(count, paths)), strict=True):
        print(f"{words:8} {path}")


if __name__ == "__main__":
    uringloop.run(main(sys.argv[1:] or [__file__]))
