from uringloop._core.loop.handle import TimerKeeper

class Timers(TimerKeeper):
    def __len__(self) -> int: ...
