from asyncio import Task
from collections.abc import Sequence
from typing import Any

def unreachable(waiting: Sequence[Task[Any]]) -> list[bool]: ...
