"""The program that runs under callgrind: does each path once to warm up, then counts it, once and twice as often.

    python -m tools.counts.counted LAYOUT WINDOW PACKAGE [PATH...]

The engine is URINGLOOP_ENGINE. LAYOUT is a number: how much memory is put aside before anything else is made. The
interpreter finds methods by the addresses of their names, and two that fall on the same place cost a path more than
some repairs do; counting with several layouts shows that. Prints a line of JSON for each path: how often it was done,
or why it could not be.
"""

from __future__ import annotations

import sys

layout = int(sys.argv[1]) if __name__ == "__main__" else 0
put_aside = [bytes(size) for size in range(16, 480, 16) for _ in range(7 * layout)]

import asyncio  # noqa: E402
import ctypes  # noqa: E402
import gc  # noqa: E402
import json  # noqa: E402
import os  # noqa: E402

from tools.counts import io_paths  # noqa: E402, F401
from tools.counts.paths import PATHS, Loop  # noqa: E402


def count(name: str, loop: Loop, window: ctypes.CDLL) -> None:
    times, path = PATHS[name]
    steps = path(loop)
    run = next(steps)
    run(times)  # fills free lists and caches
    gc.collect()
    for factor in (1, 2):
        label = f"{name} x{factor}".encode()
        window.window_begin()
        run(times * factor)
        window.window_end(label)
    if next(steps, None) is not None:
        raise RuntimeError("a path yields once")


def main(_layout: str, library: str, package: str, *names: str) -> None:
    import uringloop

    found = os.path.dirname(os.path.dirname(uringloop.__file__ or ""))
    if found != package:
        sys.exit(f"{found} is imported, not {package}")
    gc.disable()
    window = ctypes.CDLL(library)
    window.window_begin.restype = window.window_end.restype = None
    window.window_end.argtypes = [ctypes.c_char_p]
    for name in names or PATHS:
        loop = uringloop.new_event_loop()
        asyncio.set_event_loop(loop)
        error = None
        try:
            count(name, loop, window)
            loop.close()
        except Exception as failed:
            error = f"{type(failed).__name__}: {failed}"
        print(json.dumps({"path": name, "times": PATHS[name][0], "error": error}), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
