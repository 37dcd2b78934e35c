"""A server of names over UDP: asked for a name it answers with an address. names_udp.py [PORT]; Ctrl-C ends it."""

import asyncio
import sys

import uringloop

ADDRESSES = {"mars": "10.0.0.4", "venus": "10.0.0.2"}


class Names(asyncio.DatagramProtocol):
    transport: asyncio.DatagramTransport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.DatagramTransport)
        self.transport = transport

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        name = data.decode(errors="replace").strip()
        self.transport.sendto(f"{name} {ADDRESSES.get(name, 'is not known')}".encode(), addr)


async def main(port: int) -> None:
    loop = asyncio.get_running_loop()
    transport, _ = await loop.create_datagram_endpoint(Names, ("127.0.0.1", port))
    print(f"listening on {transport.get_extra_info('sockname')[1]}", flush=True)
    try:
        await asyncio.Event().wait()
    finally:
        transport.close()


if __name__ == "__main__":
    try:
        uringloop.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else 0))
    except KeyboardInterrupt:
        print("stopped")
