from uringloop._core.handle import TimerKeeper

class Timers(TimerKeeper):
    def __len__(self) -> int: ...
