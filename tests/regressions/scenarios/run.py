"""python run.py asyncio|uring|epoll: runs every scenario on a loop of its own, and prints a line of JSON for each: its
name, and what it has seen."""

from __future__ import annotations

import asyncio
import faulthandler
import json
import logging
import os
import sys
import traceback
import warnings
from pathlib import Path

import uringloop

sys.path.append(str(Path(__file__).parents[3]))  # behind the build under test

from tests.regressions.scenarios import callbacks, sockets, transports  # noqa: F401
from tests.regressions.scenarios.common import SCENARIOS


def main(which: str, *names: str) -> None:
    for name in names or SCENARIOS:
        faulthandler.dump_traceback_later(60, exit=True)
        loop = asyncio.SelectorEventLoop() if which == "asyncio" else uringloop.new_event_loop(engine=which)
        asyncio.set_event_loop(loop)
        try:
            seen = [repr(entry) for entry in SCENARIOS[name](loop)]
        except BaseException as error:
            traceback.print_exc()
            seen = [f"raised {error!r}"]
        print(json.dumps([name, seen]), flush=True)
        if not loop.is_closed():
            loop.close()
    os._exit(0)  # some have left behind what an ordinary end would complain about


if __name__ == "__main__":
    logging.disable(logging.CRITICAL)
    warnings.simplefilter("ignore")
    main(*sys.argv[1:])
