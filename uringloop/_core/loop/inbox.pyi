from typing import Self

from uringloop._core.engine.engine import Engine

class Inbox:
    def __new__(cls, engine: Engine) -> Self: ...
    def __len__(self) -> int: ...
