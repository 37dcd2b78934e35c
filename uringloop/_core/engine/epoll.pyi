from concurrent.futures import FIRST_COMPLETED as FIRST_COMPLETED
from typing import Self

from uringloop._core.engine.engine import Engine
from uringloop._core.engine.ready_queue import ReadyQueue

class EpollEngine(Engine):
    def __init__(self, ready: ReadyQueue, entries: int = 0) -> None: ...

class FdWaiters:
    def __new__(cls, fd: int) -> Self: ...
