"""A coroutine that waits for a lock of threads. Healthy: a worker thread waits, while another thread has the lock."""

import asyncio
import sys
import threading
import time

lock = threading.Lock()


def hold() -> None:
    with lock:
        print("ready", flush=True)
        time.sleep(3600)


async def main() -> None:
    if "healthy" in sys.argv:
        threading.Thread(target=hold, daemon=True).start()
        await asyncio.to_thread(lock.acquire)
    lock.acquire()
    print("ready", flush=True)
    lock.acquire()  # stuck here


asyncio.run(main())
