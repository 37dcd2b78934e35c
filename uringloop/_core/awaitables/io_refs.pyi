from typing import final

@final
class IoRefs(int):
    closed: bool
