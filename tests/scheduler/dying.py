"""How a context dies: its loop can not go on."""

from __future__ import annotations

import asyncio
from typing import Any, NoReturn

from uringloop.scheduler import Context, Scheduler

DEATH = "the death of the loop"


async def die() -> None:
    """The loop that runs this fails at the end of the turn."""
    loop: Any = asyncio.get_running_loop()

    def run_forever() -> NoReturn:
        del loop.run_forever
        raise OSError(DEATH)

    loop.run_forever = run_forever
    loop.stop()


def kill(scheduler: Scheduler, context: Context) -> None:
    scheduler.submit(die(), context=context).result(10)
    context.thread.join(10)
