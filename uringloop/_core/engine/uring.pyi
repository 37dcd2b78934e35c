from uringloop._core.engine.engine import Engine
from uringloop._core.engine.ready_queue import ReadyQueue

class UringEngine(Engine):
    def __init__(self, ready: ReadyQueue, entries: int = 0) -> None: ...
    @property
    def overflows(self) -> int: ...
