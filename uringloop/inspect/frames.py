"""Places in the program: where a coroutine is suspended or a thread runs, by file, line and function. Nothing here
reads the value of a variable into a result: only names, and the program's own source."""

from __future__ import annotations

import ast
import itertools
import linecache
import os
from collections.abc import Iterable
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

Place = dict[str, Any]

_PACKAGE = str(Path(__file__).parents[1]) + os.sep
_LIBRARY = str(Path(os.__file__).parent) + os.sep
_FOREIGN = ("site-packages", "dist-packages")
_SUSPENDED = (("cr_frame", "cr_await"), ("gi_frame", "gi_yieldfrom"), ("ag_frame", "ag_await"))


def place(frame: FrameType) -> Place:
    code = frame.f_code
    return {
        "file": code.co_filename,
        "line": frame.f_lineno or code.co_firstlineno,
        "function": code.co_qualname,
    }


def is_own(path: str) -> bool:
    """Whether a file is the program's, or of a library that it installed: not uringloop's, not Python's."""
    if path.startswith((_PACKAGE, "<frozen")):
        return False
    return not path.startswith(_LIBRARY) or any(each in path for each in _FOREIGN)


def own_place(stack: list[Place]) -> Place | None:
    """The innermost place in the program's own files; without one, the innermost place."""
    for each in reversed(stack):
        if is_own(each["file"]):
            return each
    return stack[-1] if stack else None


def is_in(frame: FrameType, ending: str) -> bool:
    """Whether the frame's file is a certain one of the library: "asyncio/locks.py"."""
    return frame.f_code.co_filename.startswith(_LIBRARY) and frame.f_code.co_filename.endswith(ending)


def stack_below(frame: FrameType | None) -> list[FrameType]:
    """A thread's frames, the innermost last."""
    frames = []
    while frame is not None:
        frames.append(frame)
        frame = frame.f_back
    return frames[::-1]


def chain_of(awaited: Any) -> tuple[list[Any], list[FrameType], Any]:
    """The suspended coroutines, from the outermost to the innermost; their frames; and what the innermost awaits."""
    coroutines: list[Any] = []
    frames: list[FrameType] = []
    while awaited is not None and len(frames) < 100:
        for name, further in _SUSPENDED:
            found = getattr(awaited, name, None)
            if found is not None:
                coroutines.append(awaited)
                frames.append(found)
                awaited = getattr(awaited, further, None)
                break
        else:
            break
    return coroutines, frames, awaited


def is_entering(frame: FrameType) -> bool:
    """Whether a suspended frame awaits the `__aenter__` of an `async with`."""
    import dis

    found = 0
    for instruction in dis.get_instructions(frame.f_code):
        if instruction.offset > frame.f_lasti:
            break
        if instruction.opname == "GET_AWAITABLE":
            found = instruction.arg or 0
    return found == 1


def called_at(frame: FrameType) -> str | None:
    """What the frame calls now, as its source names it: "time.sleep"; None if the source doesn't tell."""
    return _named(_expression(frame.f_code, frame.f_lasti))


def is_call_without_arguments(frame: FrameType) -> bool:
    found = _expression(frame.f_code, frame.f_lasti)
    if isinstance(found, ast.Call):
        return not found.args and not found.keywords
    return isinstance(found, ast.Name | ast.Attribute)  # `with lock:`


def awaits_what_it_makes(frames: list[FrameType]) -> bool:
    """Whether the innermost of the program's own frames is at `await Future()`, or at `await Event().wait()`."""
    own = [frame for frame in frames if is_own(frame.f_code.co_filename)]
    awaited = _expression(own[-1].f_code, own[-1].f_lasti) if own else None
    awaited = awaited.value if isinstance(awaited, ast.Await) else awaited
    if not isinstance(awaited, ast.Call):
        return False
    called = (_named(awaited) or "").rpartition(".")[2]
    made = awaited.func.value if isinstance(awaited.func, ast.Attribute) else None
    return called in ("Future", "create_future") or (called == "wait" and isinstance(made, ast.Call))


def _expression(code: CodeType, at: int) -> ast.AST | None:
    """The source's expression to which an instruction belongs."""
    span: Iterable[Any] = next(itertools.islice(code.co_positions(), at // 2, None), ())
    line, end_line, column, end_column = tuple(span) or (None,) * 4
    if line is None or end_line is None or column is None or end_column is None:
        return None
    lines = [each.encode() for each in linecache.getlines(code.co_filename)[line - 1 : end_line]]
    if len(lines) != end_line - line + 1:
        return None
    lines[-1] = lines[-1][:end_column]
    lines[0] = lines[0][column:]
    try:
        return ast.parse(b"(" + b"".join(lines) + b")", mode="eval").body
    except (SyntaxError, ValueError):
        return None


def _named(expression: ast.AST | None) -> str | None:
    if isinstance(expression, ast.Call):
        return _named(expression.func)
    if isinstance(expression, ast.Name):
        return expression.id
    if isinstance(expression, ast.Attribute):
        return f"{_named(expression.value) or '...'}.{expression.attr}"
    return None
