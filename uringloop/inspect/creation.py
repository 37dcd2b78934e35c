"""The stack where an unclosed object was made: debug mode stores it, and the warning shows it."""

from __future__ import annotations

import sys
import traceback
import warnings
from asyncio import format_helpers
from typing import Any


def creation_stack(loop: Any) -> traceback.StackSummary | None:
    """In debug mode, the stack of the calling function; otherwise None."""
    return format_helpers.extract_stack(sys._getframe(1)) if loop.get_debug() else None


def creation_note(stack: traceback.StackSummary | None) -> str:
    """The text that follows "unclosed ..." in a warning."""
    return f", made at (most recent call last):\n{''.join(stack.format()).rstrip()}" if stack else ""


class WarnsWithStack:
    """A mixin before a transport class of asyncio, whose finaliser warns through its `_warn` argument."""

    made_at: traceback.StackSummary | None = None

    def __del__(self, _warn: Any = warnings.warn) -> None:
        def warn(message: str, category: type[Warning], source: object) -> None:
            _warn(message + creation_note(self.made_at), category, source=source)

        super().__del__(warn)  # type: ignore[misc]
