"""The worker's child half: reads a request per line, runs the work on a fresh loop of one candidate,
answers a line.

Standard output belongs to the answers: it is moved away from file descriptor 1 first, so that a loop which
prints cannot corrupt them.
"""

from __future__ import annotations

import asyncio
import gc
import importlib
import json
import os
import sys
from typing import Any, TextIO

from benchmarks.candidate import Candidate, candidate_named
from benchmarks.row import Skipped


def run_work(candidate: Candidate, request: dict[str, Any]) -> dict[str, float]:
    """Run one sample. The work gets a fresh loop that is not running, and closes what it opened; we
    close the loop.
    """
    module_name, _, function_name = request["work"].partition(":")
    work = getattr(importlib.import_module(f"benchmarks.{module_name}"), function_name)
    loop = candidate.new_event_loop()
    asyncio.set_event_loop(loop)
    gc.collect()
    try:
        values: dict[str, float] = work(loop, request["seconds"], **request["arguments"])
    finally:
        asyncio.set_event_loop(None)
        loop.close()
    return values


def answer(candidate: Candidate, request: dict[str, Any]) -> dict[str, Any]:
    try:
        return {"values": run_work(candidate, request)}
    except Skipped as reason:
        return {"skipped": str(reason)}
    except (
        BaseException
    ) as error:  # a failing candidate is a result, even if it fails with SystemExit or a Rust panic
        return {"error": f"{type(error).__name__}: {error}"[:300]}


def greeting(candidate: Candidate) -> dict[str, Any]:
    """Whether the candidate can be made and run at all, and which version it is."""
    try:
        loop = candidate.new_event_loop()
        loop.run_until_complete(asyncio.sleep(0))
        loop.close()
    except BaseException as error:
        return {"error": f"{type(error).__name__}: {error}"[:300]}
    return {"version": candidate.version()}


def main() -> None:
    answers: TextIO = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    candidate = candidate_named(sys.argv[1])
    print(json.dumps(greeting(candidate)), file=answers)
    for line in sys.stdin:
        request = json.loads(line)
        reply = {"version": candidate.version()} if "work" not in request else answer(candidate, request)
        print(json.dumps(reply), file=answers)
    os._exit(0)  # a loop that cannot shut down cleanly must not hang the run


if __name__ == "__main__":
    main()
