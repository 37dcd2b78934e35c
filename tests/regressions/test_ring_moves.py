"""A loop that one thread after another runs: nothing that arrives in between is lost, whatever the ring's flags."""

from __future__ import annotations

from typing import Any

import pytest

pytestmark = pytest.mark.engines("uring")

MOVES = """
import asyncio, socket, threading, uringloop

class Count(asyncio.Protocol):
    def __init__(self): self.got, self.lost = bytearray(), loop.create_future()
    def connection_lost(self, error): self.lost.set_result(error)
    def data_received(self, data): self.got += data

loop = uringloop.new_event_loop()
pairs = [socket.socketpair() for _ in range(20)]

async def connect():
    return [(await loop.create_connection(Count, sock=left))[1] for left, _ in pairs]

protocols = loop.run_until_complete(connect())
sent = bytearray()

async def until_all():
    while any(len(protocol.got) < len(sent) for protocol in protocols):
        await asyncio.sleep(0)

def run():
    loop.run_until_complete(until_all())

def send(size):
    data = bytes([len(sent) % 251]) * size
    sent.extend(data)
    for _, right in pairs:
        right.sendall(data)

for i in range(60):
    threads = [threading.Thread(target=run)]
    if i % 3 == 0:
        send(100)  # nobody runs it: the kernel may have taken this for the thread that has gone
    threads[0].start()
    threads[0].join()
    send(1 + i)
    if i % 2:
        run()
assert all(protocol.got != b"" for protocol in protocols)
run()
assert all(protocol.got == sent for protocol in protocols)
for _, right in pairs:
    right.close()
loop.run_until_complete(asyncio.gather(*(protocol.lost for protocol in protocols)))
loop.close()
print("ok")
"""


@pytest.mark.parametrize("without", ["", "defer_taskrun", "defer_taskrun,coop_taskrun", "registered_ring"])
def test_nothing_that_arrives_between_two_threads_is_lost(program: Any, without: str) -> None:
    assert program(MOVES, URINGLOOP_DISABLE=without, URINGLOOP_ENGINE="uring").stdout == "ok\n"
