"""C code that keeps the GIL. Healthy: it releases the GIL, in another thread."""

import asyncio
import ctypes
import sys


async def main() -> None:
    print("ready", flush=True)
    if "healthy" in sys.argv:
        await asyncio.to_thread(ctypes.CDLL(None).sleep, 3600)
    ctypes.PyDLL(None).sleep(3600)  # stuck here


asyncio.run(main())
