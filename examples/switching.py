"""An asyncio program that knows nothing of uringloop, and the four ways to run it there: switching.py WAY"""

import asyncio
import sys

import uringloop


async def main() -> None:
    print(type(asyncio.get_running_loop()).__name__)


def by_run() -> None:
    uringloop.run(main())  # instead of asyncio.run(main())


def by_runner() -> None:
    with asyncio.Runner(loop_factory=uringloop.new_event_loop) as runner:
        runner.run(main())


def by_policy() -> None:
    asyncio.set_event_loop_policy(uringloop.EventLoopPolicy())  # until Python 3.15
    asyncio.run(main())


def by_install() -> None:
    uringloop.install()  # from here on asyncio makes loops of uringloop
    asyncio.run(main())


WAYS = {"run": by_run, "runner": by_runner, "policy": by_policy, "install": by_install}

if __name__ == "__main__":
    way = sys.argv[1] if len(sys.argv) > 1 else "run"
    if way not in WAYS:
        sys.exit(f"the ways are {', '.join(WAYS)}")
    WAYS[way]()
