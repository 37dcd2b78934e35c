class Spinner:
    spins: int
    hits: int
    def __init__(self, busy_poll: float) -> None: ...
