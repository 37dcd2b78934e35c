"""Finding out what holds a loop up: a watchdog, a trace, and the inspector that `uringloop top` asks."""

import asyncio
import sys
import time

import uringloop
from uringloop.inspect import SlowCallback, serve, snapshot, trace, watchdog


def report(slow: SlowCallback) -> None:
    print(f"{slow.name} has held the loop up for {slow.seconds:.2f} s; it is at:")
    print(slow.stack[-1])


async def think_hard() -> None:
    time.sleep(0.3)  # a mistake: nothing else runs meanwhile


async def main(path: str) -> None:
    with trace(path) as recorder, watchdog(seconds=0.1, report=report):
        await asyncio.sleep(0.01)
        await asyncio.create_task(think_hard(), name="thinker")
        await asyncio.sleep(0.01)
    print(recorder.events, "events to look at in https://ui.perfetto.dev")

    with serve() as inspector:  # or URINGLOOP_INSPECT=1, and nothing in the program
        print("python -m uringloop top", snapshot()["pid"], "asks", inspector.path.name)


if __name__ == "__main__":
    uringloop.run(main(sys.argv[1] if len(sys.argv) > 1 else "trace.json"))
