from uringloop._core.engine.epoll import EpollEngine

class FakeEngine(EpollEngine):
    @property
    def seed(self) -> str: ...
    @property
    def interfered(self) -> dict[str, int]: ...
