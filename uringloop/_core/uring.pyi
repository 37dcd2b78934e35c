from uringloop._core.engine import Engine
from uringloop._core.ready import ReadyQueue

class UringEngine(Engine):
    def __init__(self, ready: ReadyQueue, entries: int = 0) -> None: ...
    @property
    def overflows(self) -> int: ...
