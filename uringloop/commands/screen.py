"""The output of `uringloop top`: plain lines, or, with rich, a live view that fits the terminal."""

from __future__ import annotations

from typing import Any

from uringloop.inspect.rates import Rates

NOTHING = Rates(0.0, 0.0, 0.0, 0.0, None, 0.0)
SHOWN_TASKS = 20


def clean(text: object) -> str:
    """Replace characters that could control the terminal: the names come from the program."""
    return "".join(each if each.isprintable() else "?" for each in str(text))


def percent(part: float | None) -> str:
    return "?" if part is None else f"{100 * part:.1f} %"


def duration(seconds: float) -> str:
    if seconds >= 1:
        return f"{seconds:.2f} s"
    return f"{seconds * 1e3:.2f} ms" if seconds >= 0.001 else f"{seconds * 1e6:.1f} us"


def called(what: dict[str, Any]) -> str:
    detail = what["detail"]
    return clean(what["name"] if detail is None else f"{what['name']} ({detail})")


def headline(snapshot: dict[str, Any]) -> str:
    count = len(snapshot["loops"])
    return clean(
        f"process {snapshot['pid']} ({' '.join(snapshot['command'])[:60]}), uringloop {snapshot['uringloop']}, "
        f"Python {snapshot['python']}, {count} loop{'' if count == 1 else 's'}"
    )


def in_kernel(loop: dict[str, Any]) -> str:
    if loop["operations"] is None:
        return str(loop["statistics"]["in_kernel"])
    return ", ".join(f"{clean(kind)} {count}" for kind, count in loop["operations"].items()) or "nothing"


def suspended(task: dict[str, Any]) -> str:
    """Where a task is suspended: the innermost line of the program's own code, and the innermost line of all."""
    stack = task["stack"]
    if not stack:
        return "not started, or over"
    own = [place for place in stack if "/asyncio/" not in place and "/uringloop/" not in place]
    ends = list(dict.fromkeys([(own or stack)[-1], stack[-1]]))
    return clean(" > ".join(place.rsplit("/", 1)[-1] for place in ends))


def lines(snapshot: dict[str, Any], found: dict[int, Rates]) -> list[str]:
    text = [headline(snapshot)]
    if not snapshot["loops"]:
        text.append("It has no loop of uringloop now.")
    for loop in snapshot["loops"]:
        rate, counts = found.get(loop["number"], NOTHING), loop["statistics"]
        debug = ", debug" if loop["debug"] else ""
        thread = "" if loop["thread"] is None else f", thread {clean(loop['thread'])}"
        text += [
            "",
            f"loop {loop['number']}: {loop['engine']}, {loop['state']}{debug}{thread}",
            f"  busy {percent(rate.busy)}, cpu {percent(rate.cpu)}",
            f"  turns {rate.turns:.0f}/s, callbacks {rate.callbacks:.0f}/s, system calls {rate.system_calls:.0f}/s",
            f"  ready {counts['ready']}, timers {counts['timers']}, transports {counts['transports']}",
            f"  in the kernel: {in_kernel(loop)}",
        ]
        if loop["running"] is not None and loop["running"]["stack"]:
            text.append(f"  stuck for {duration(loop['running']['seconds'])} in {called(loop['running'])}:")
            text += ["    " + clean(line) for each in loop["running"]["stack"] for line in each.splitlines()]
        if loop["slowest"]:
            text.append("  slowest callbacks of the last minute:")
            text += [
                f"    {duration(each['seconds']):>10}  {called(each)}, {each['ago_seconds']:.0f} s ago"
                for each in loop["slowest"]
            ]
        text += _task_lines(loop["tasks"])
    found_hints = hints(snapshot)
    return [*text, "", "worth a look:", *(f"  {each}" for each in found_hints)] if found_hints else text


def hints(snapshot: dict[str, Any]) -> list[str]:
    """What the process says is worth a look; an older one says nothing."""
    return [clean(each) for each in snapshot.get("hints", ())]


def _task_lines(tasks: dict[str, Any] | None) -> list[str]:
    if tasks is None:
        return ["  tasks: not known, the loop is stuck"]
    text = [f"  tasks: {tasks['count']}"]
    for task in tasks["shown"][:SHOWN_TASKS]:
        text.append(f"    {clean(task['name'])}  {clean(task['coroutine'])}  at {suspended(task)}")
    more = tasks["count"] - min(SHOWN_TASKS, len(tasks["shown"]))
    return [*text, f"    and {more} more"] if more > 0 else text


def picture(snapshot: dict[str, Any], found: dict[int, Rates], output: list[str]) -> Any:
    """The live view, for rich's Live; `output` is the last lines that the program wrote."""
    from rich.console import Group
    from rich.panel import Panel
    from rich.table import Table
    from rich.text import Text

    overview = Table(title=Text(headline(snapshot)), expand=True)
    for name in "loop engine state busy cpu turns/s callbacks/s ready timers transports".split():
        overview.add_column(name, justify="right" if name not in ("engine", "state") else "left")
    parts: list[Any] = [overview]
    for loop in snapshot["loops"]:
        rate, counts = found.get(loop["number"], NOTHING), loop["statistics"]
        overview.add_row(
            str(loop["number"]),
            loop["engine"],
            loop["state"],
            percent(rate.busy),
            percent(rate.cpu),
            f"{rate.turns:.0f}",
            f"{rate.callbacks:.0f}",
            *(str(counts[name]) for name in ("ready", "timers", "transports")),
            style="red" if loop["running"] is not None and loop["running"]["stack"] else None,
        )
        # The overview shows the contents of the first lines.
        about = lines({**snapshot, "loops": [loop], "hints": []}, found)[6:]
        parts.append(Panel(Text("\n".join(about)), title=f"loop {loop['number']}", title_align="left"))
    if hints(snapshot):
        parts.append(Panel(Text("\n".join(hints(snapshot))), title="worth a look", title_align="left"))
    if output:
        parts.append(Panel(Text("\n".join(map(clean, output))), title="output", title_align="left"))
    return Group(*parts)
