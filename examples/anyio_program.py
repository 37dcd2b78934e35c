"""A program of anyio's, with anyio told which loop to make (needs anyio)."""

import asyncio

import anyio

import uringloop


async def main() -> None:
    async with anyio.create_task_group() as group:
        for number in range(3):
            group.start_soon(anyio.sleep, number / 100)
    print(type(asyncio.get_running_loop()).__module__)


if __name__ == "__main__":
    anyio.run(main, backend_options={"loop_factory": uringloop.new_event_loop})
