"""An ASGI application on every core: one port, a uvicorn per loop (needs uvicorn). asgi_many_loops.py [PORT]"""

import signal
import socket
import sys
from typing import Any

import uvicorn

import uringloop

LOOPS = 2


async def app(scope: Any, receive: Any, send: Any) -> None:
    assert scope["type"] == "http"
    context = uringloop.current_context()
    assert context is not None
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/plain")]})
    await send({"type": "http.response.body", "body": f"hello from {context.name}\n".encode()})


def listener(port: int) -> socket.socket:
    """One per loop; the kernel deals the connections out to all that share the port."""
    sock = socket.socket()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    sock.bind(("127.0.0.1", port))
    sock.listen()
    return sock


def main(port: int) -> None:
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM, signal.SIGINT])  # taken below
    with uringloop.Scheduler(LOOPS, name="web") as scheduler:
        servers = []
        for context in scheduler.contexts:
            server = uvicorn.Server(uvicorn.Config(app, lifespan="off", log_level="warning"))
            sock = listener(port)
            port = sock.getsockname()[1]
            scheduler.submit(server.serve, [sock], context=context)
            servers.append(server)
        print(f"listening on {port}", flush=True)
        signal.sigwait([signal.SIGTERM, signal.SIGINT])
        for server in servers:
            server.should_exit = True
    print("stopped")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 0)
