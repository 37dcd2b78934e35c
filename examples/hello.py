"""The smallest program: what asyncio.run would do, on uringloop."""

import asyncio

import uringloop


async def main() -> None:
    loop = asyncio.get_running_loop()
    await asyncio.sleep(0.01)
    print("hello from", type(loop).__module__)


if __name__ == "__main__":
    uringloop.run(main())
