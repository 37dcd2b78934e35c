"""Run many commands, a few at a time, and collect what they print."""

import asyncio
import sys

import uringloop


async def run(number: int, limit: asyncio.Semaphore) -> str:
    async with limit:
        code = f"print({number} ** 2)"
        child = await asyncio.create_subprocess_exec(
            sys.executable, "-c", code, stdout=asyncio.subprocess.PIPE
        )
        output, _ = await child.communicate()
        return output.decode().strip()


async def main() -> None:
    limit = asyncio.Semaphore(4)
    print(*await asyncio.gather(*(run(number, limit) for number in range(6))))


if __name__ == "__main__":
    uringloop.run(main())
