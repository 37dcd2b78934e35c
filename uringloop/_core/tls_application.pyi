from typing import Any

class Application:
    protocol: Any
    transport: Any
    def __init__(self, loop: Any, protocol: Any, call_connection_made: bool) -> None: ...
