"""An echo server of asyncio's protocols: echo_protocol.py [PORT]; Ctrl-C ends it."""

import asyncio
import sys

import uringloop


class Echo(asyncio.Protocol):
    transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.transport.write(data)

    # A client that does not read its answers: read no more of its questions.
    def pause_writing(self) -> None:
        self.transport.pause_reading()

    def resume_writing(self) -> None:
        self.transport.resume_reading()


async def main(port: int) -> None:
    loop = asyncio.get_running_loop()
    server = await loop.create_server(Echo, "127.0.0.1", port)
    print(f"listening on {server.sockets[0].getsockname()[1]}", flush=True)
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    try:
        uringloop.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else 0))
    except KeyboardInterrupt:
        print("stopped")
