"""The C library keeps the memory of one turn for the next, instead of giving it back to the kernel each time."""

from __future__ import annotations

import platform
import sys
from collections.abc import Callable
from typing import Any

import pytest

Program = Callable[..., Any]

glibc = pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc trims its heap so")
own_malloc = pytest.mark.skipif(
    not getattr(sys, "_is_gil_enabled", lambda: True)(),
    reason="a free-threaded Python takes memory from mimalloc",
)

# Each turn receives all 50 messages before it sends them. Prints the page faults of a thousand messages.
ECHO = """
import asyncio, resource, socket, sys
import uringloop

SIZE, ROUNDS = 40_000, 30
kept = [bytes(1000) for _ in range(int(sys.argv[1]) // 1000)]

class Echo(asyncio.Protocol):
    def connection_made(self, transport):
        self.transport = transport

    def data_received(self, data):
        self.transport.write(data)

async def main():
    loop = asyncio.get_running_loop()
    clients = []
    for _ in range(50):
        client, server = socket.socketpair()
        client.setblocking(False)
        await loop.create_connection(Echo, sock=server)
        clients.append(client)
    message, room = bytes(SIZE), bytearray(SIZE)

    async def answers():
        for client in clients:
            client.send(message)
        for client in clients:
            missing = SIZE
            while missing:
                try:
                    missing -= client.recv_into(room, missing)
                except BlockingIOError:
                    await asyncio.sleep(0)

    for _ in range(10):
        await answers()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(ROUNDS):
        await answers()
    faults = resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
    print(faults * 1000 // (len(clients) * ROUNDS))

uringloop.run(main())
"""

# Fills 2 MB at the top of the heap and frees them. Prints how much free memory the top still has.
TOP = """
import ctypes, sys
import uringloop

class Info(ctypes.Structure):
    _fields_ = [(name, ctypes.c_size_t) for name in (
        "arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks", "fordblks", "keepcost")]

libc = ctypes.CDLL(None)
libc.malloc.restype, libc.malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
libc.free.restype, libc.free.argtypes = None, [ctypes.c_void_p]
libc.mallinfo2.restype = Info
uringloop.new_event_loop().close()
blocks = [libc.malloc(100_000) for _ in range(20)]
for block in reversed(blocks):
    libc.free(block)
print(libc.mallinfo2().keepcost)
"""


@glibc
@own_malloc
@pytest.mark.parametrize("ballast", [0, 300_000, 900_000])
def test_a_turn_of_large_messages_does_not_fault_its_memory_in_again(
    program: Program, engine: str, ballast: int
) -> None:
    """A page fault or more for each 4 KB when glibc trims the heap between two turns: some 5,000."""
    if engine == "fake":
        pytest.skip("the simulated kernel copies the messages itself")
    assert int(program(ECHO, str(ballast), URINGLOOP_ENGINE=engine).stdout) < 500


@glibc
def test_the_first_loop_raises_the_trim_threshold(program: Program) -> None:
    assert int(program(TOP).stdout) > 1_500_000


@glibc
def test_malloc_can_be_left_as_it_is(program: Program) -> None:
    assert int(program(TOP, URINGLOOP_MALLOC="unchanged").stdout) < 500_000
    # what a user has set has precedence, too
    assert int(program(TOP, MALLOC_TRIM_THRESHOLD_="131072").stdout) < 500_000


def test_an_unknown_choice_is_an_error(program: Program) -> None:
    ended = program(TOP, URINGLOOP_MALLOC="unchangd", check=False)
    assert ended.returncode == 1
    assert ended.stderr.endswith(
        "ValueError: URINGLOOP_MALLOC is 'raised' (the default) or 'unchanged', not 'unchangd'\n"
    )
