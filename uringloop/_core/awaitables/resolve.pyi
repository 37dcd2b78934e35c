from collections.abc import Coroutine
from typing import Any, final

from uringloop._core.awaitables.future_op import FutureOp

@final
class Resolved(FutureOp): ...

def getaddrinfo(
    self: Any, host: Any, port: Any, *, family: int = 0, type: int = 0, proto: int = 0, flags: int = 0
) -> Coroutine[Any, Any, list[tuple[Any, ...]]]: ...
def getnameinfo(self: Any, sockaddr: Any, flags: int = 0) -> Coroutine[Any, Any, tuple[str, str]]: ...
