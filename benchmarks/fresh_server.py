"""An echo server as a user writes it: `python fresh_server.py LOOP OPTIONS BALLAST`. It imports nothing else.

The ballast is what a program keeps from its start, in bytes: it decides where the heap of the process ends.
"""

import asyncio
import importlib
import json
import sys
from typing import Any


class Echo(asyncio.Protocol):
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport: Any = transport

    def data_received(self, data: bytes) -> None:
        self.transport.write(data)


async def main() -> None:
    server = await asyncio.get_running_loop().create_server(Echo, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await asyncio.Event().wait()


module, options, ballast = importlib.import_module(sys.argv[1]), json.loads(sys.argv[2]), int(sys.argv[3])
kept = [bytes(8000) for _ in range(ballast // 8000)]
with asyncio.Runner(loop_factory=lambda: module.new_event_loop(**options)) as runner:
    runner.run(main())
