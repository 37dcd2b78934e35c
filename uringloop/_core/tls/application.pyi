from typing import Any, Self

class Application:
    protocol: Any
    transport: Any
    def __new__(cls, loop: Any, protocol: Any, call_connection_made: bool) -> Self: ...
