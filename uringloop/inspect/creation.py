"""Where a thing was made that nobody closed: debug mode remembers the stack, and the warning shows it."""

from __future__ import annotations

import sys
import traceback
import warnings
from asyncio import format_helpers
from typing import Any


def creation_stack(loop: Any) -> traceback.StackSummary | None:
    """The stack of whoever called the caller, in debug mode."""
    return format_helpers.extract_stack(sys._getframe(1)) if loop.get_debug() else None


def creation_note(stack: traceback.StackSummary | None) -> str:
    """To stand behind "unclosed ..."."""
    return f", made at (most recent call last):\n{''.join(stack.format()).rstrip()}" if stack else ""


class WarnsWithStack:
    """Before a transport class of asyncio's, whose finaliser warns through what it is given."""

    made_at: traceback.StackSummary | None = None

    def __del__(self, _warn: Any = warnings.warn) -> None:
        def warn(message: str, category: type[Warning], source: object) -> None:
            _warn(message + creation_note(self.made_at), category, source=source)

        super().__del__(warn)  # type: ignore[misc]
