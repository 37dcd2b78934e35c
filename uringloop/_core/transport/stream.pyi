from asyncio import BaseProtocol, Future
from asyncio import Transport as Interface
from socket import socket
from typing import Any, final

# To a type checker its interface is asyncio's, which `isinstance` says too.
@final
class StreamTransport(Interface): ...

def make_stream_transport(
    loop: Any,
    sock: socket,
    protocol: BaseProtocol,
    waiter: Future[None] | None,
    extra: dict[str, Any] | None,
    server: Any,
    cvars: Any,
) -> StreamTransport: ...
