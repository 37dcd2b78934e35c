"""Print what is appended to log files, as `tail -f` does: tail.py FILE...; Ctrl-C ends it."""

import asyncio
import os
import sys

import uringloop


async def tail(path: str) -> None:
    async with uringloop.open_file(path, errors="replace") as file:
        await file.seek(0, os.SEEK_END)
        print(f"watching {path}", flush=True)
        begun = ""
        while True:
            begun += await file.readline()
            if begun.endswith("\n"):
                print(f"{os.path.basename(path)}: {begun}", end="", flush=True)
                begun = ""
            else:  # a line is only half there, or none
                await asyncio.sleep(0.05)


async def main(paths: list[str]) -> None:
    async with asyncio.TaskGroup() as group:
        for path in paths:
            group.create_task(tail(path))


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    try:
        uringloop.run(main(sys.argv[1:]))
    except KeyboardInterrupt:
        print("stopped")
