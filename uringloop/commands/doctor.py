"""uringloop doctor: reports what this machine offers, and tries a loop. Exit code 0: io_uring is used, or
URINGLOOP_ENGINE chooses epoll; 1: epoll is used, because io_uring is refused; 2: no loop works."""

from __future__ import annotations

import argparse
import asyncio
import json
import socket
import warnings

from uringloop.inspect.doctor import Report, as_dict, diagnose
from uringloop.loop import new_event_loop

HELP = "what this machine offers or refuses, why, and what to do"


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="for programs")


def main(options: argparse.Namespace) -> int:
    try:
        report = diagnose()
        tried = _try()
    except (OSError, ValueError) as error:
        if options.json:
            print(json.dumps({"usable": False, "engine": None, "cause": str(error)}))
        else:
            print(f"No loop can be made here: {error}")
        return 2
    if options.json:
        print(json.dumps({**as_dict(report), "tried": tried}, indent=2))
    else:
        print(_text(report, tried))
    return report.exit_code


def _try() -> str:
    """Run a loop that sleeps, is called by a thread, and sends itself a byte; return the name of its engine."""

    async def main() -> bytes:
        loop = asyncio.get_running_loop()
        ours, theirs = socket.socketpair()
        with ours, theirs:
            ours.setblocking(False)
            await asyncio.sleep(0)
            await loop.run_in_executor(None, theirs.send, b"x")
            return await asyncio.wait_for(loop.sock_recv(ours, 1), 5)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the report says in more detail that io_uring is refused
        with asyncio.Runner(loop_factory=new_event_loop) as runner:
            if runner.run(main()) != b"x":
                raise OSError("what was sent did not arrive")
            engine: str = runner.get_loop()._engine_name  # type: ignore[attr-defined]
            return engine


def _text(report: Report, tried: str) -> str:
    verdict = "io_uring is used" if report.usable else f"io_uring is refused: {report.cause}"
    if report.chosen:
        verdict = "io_uring is offered" if report.usable else verdict
        verdict += "; URINGLOOP_ENGINE chooses epoll"
    lines = [f"{verdict}. A loop was made, on {tried}, and works.", ""]
    width = max(map(len, [*report.versions, *report.limits]))
    lines += [f"  {name:{width}}  {value}" for name, value in (report.versions | report.limits).items()]
    if report.usable:
        uses = "would use" if report.chosen else "uses"
        lines += ["", f"What the loop {uses} of this kernel:", ""]
        width = max(len(feature.name) for feature in report.features)
        for feature in report.features:
            mark = "yes" if feature.used else "no "
            lines.append(f"  {mark}  {feature.name:{width}}  {feature.since:>4}  {feature.note}")
    if report.advice:
        lines += ["", "What to do:", "", *(f"  - {advice}" for advice in report.advice)]
    return "\n".join(lines)
