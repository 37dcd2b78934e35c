"""A call in an executor's thread that waits for ever. Healthy: it sleeps."""

import asyncio
import sys
import threading
import time

lock = threading.Lock()


def work() -> None:
    print("ready", flush=True)
    if "healthy" in sys.argv:
        time.sleep(3600)
    lock.acquire()  # stuck here


async def main() -> None:
    lock.acquire()
    await asyncio.get_running_loop().run_in_executor(None, work)


asyncio.run(main())
