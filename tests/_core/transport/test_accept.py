"""AcceptOp: nobody whom the kernel has accepted is lost where somebody else takes over."""

from __future__ import annotations

import asyncio
import os
import socket
from typing import Any

import pytest

from uringloop._core.transport.accept import AcceptOp


class Taker:
    """What net/servers.py's Listener is to an AcceptOp."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock, self.taken = sock, 0

    def fileno(self) -> int:
        return self.sock.fileno()

    def connected(self, fd: int) -> None:
        os.close(fd)
        self.taken += 1


async def some_turns(count: int) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


@pytest.mark.parametrize("turns", range(5))
def test_a_connection_accepted_around_stop_reaches_exactly_one_taker(loop: Any, turns: int) -> None:
    async def main() -> None:
        with socket.create_server(("127.0.0.1", 0)) as sock:
            sock.setblocking(False)
            before, after = Taker(sock), Taker(sock)
            op = AcceptOp(loop, sock.fileno(), before)
            op.start()
            await some_turns(4)  # the kernel has it
            with socket.create_connection(sock.getsockname()):
                await some_turns(turns)
                op.stop(after.connected)
                await some_turns(4)
                # The fake kernel may report the accept turns later.
                waiting = 0
                while not before.taken + after.taken + waiting:
                    try:
                        sock.accept()[0].close()
                        waiting += 1
                    except BlockingIOError:
                        await some_turns(1)
                await some_turns(4)
            assert before.taken + after.taken + waiting == 1

    loop.run_until_complete(asyncio.wait_for(main(), 30))
