"""A task that waits for a future to which nothing else refers, beside a server. Healthy: a timer sets it."""

import asyncio
import sys


async def request() -> None:
    answer = asyncio.get_running_loop().create_future()
    if "healthy" in sys.argv:
        asyncio.get_running_loop().call_later(3600, answer.set_result, None)
    print("ready", flush=True)
    await answer  # stuck here


async def main() -> None:
    server = await asyncio.start_server(lambda *_: None, "127.0.0.1", 0)
    task = asyncio.create_task(request(), name="request")
    await server.serve_forever()
    await task


asyncio.run(main())
