"""grpc.aio: a server and a client, with generic handlers (no generated code)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import grpc

from compat.behaviours import check
from compat.behaviours.helpers import raises_async, soon

ROW = "grpc.aio"


class _Handlers(grpc.GenericRpcHandler):
    """Four kinds of calls on plain bytes."""

    def service(self, details: Any) -> Any:
        async def unary(request: bytes, context: Any) -> bytes:
            return request[::-1]

        async def stream_out(request: bytes, context: Any) -> AsyncIterator[bytes]:
            for number in range(int(request)):
                yield b"%d" % number

        async def stream_in(requests: AsyncIterator[bytes], context: Any) -> bytes:
            return b"".join([request async for request in requests])

        async def both(requests: AsyncIterator[bytes], context: Any) -> AsyncIterator[bytes]:
            async for request in requests:
                yield request.upper()

        async def slow(request: bytes, context: Any) -> bytes:
            await asyncio.sleep(30)
            return b""

        return {
            "/t/unary": grpc.unary_unary_rpc_method_handler(unary),
            "/t/out": grpc.unary_stream_rpc_method_handler(stream_out),
            "/t/in": grpc.stream_unary_rpc_method_handler(stream_in),
            "/t/both": grpc.stream_stream_rpc_method_handler(both),
            "/t/slow": grpc.unary_unary_rpc_method_handler(slow),
        }.get(details.method)


async def _serve() -> tuple[Any, Any]:
    server = grpc.aio.server()
    server.add_generic_rpc_handlers((_Handlers(),))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    return server, grpc.aio.insecure_channel(f"127.0.0.1:{port}")


@check(ROW)
async def every_kind_of_call() -> None:
    server, channel = await _serve()
    async with channel:
        assert await soon(channel.unary_unary("/t/unary")(b"abc")) == b"cba"
        assert [item async for item in channel.unary_stream("/t/out")(b"100")] == [
            b"%d" % n for n in range(100)
        ]

        async def parts() -> AsyncIterator[bytes]:
            for number in range(50):
                yield b"%d" % number

        assert await soon(channel.stream_unary("/t/in")(parts())) == b"".join(b"%d" % n for n in range(50))
        call = channel.stream_stream("/t/both")()
        for word in (b"one", b"two"):
            await call.write(word)
            assert await soon(call.read()) == word.upper()
        await call.done_writing()
    await soon(server.stop(1))


@check(ROW)
async def many_calls_at_once() -> None:
    server, channel = await _serve()
    async with channel:
        unary = channel.unary_unary("/t/unary")
        replies = await soon(asyncio.gather(*(unary(b"%d" % number) for number in range(500))), 20)
        assert replies == [(b"%d" % number)[::-1] for number in range(500)]
        big = bytes(range(256)) * 8000
        assert await soon(unary(big)) == big[::-1]
    await soon(server.stop(1))


@check(ROW)
async def deadlines_and_cancels() -> None:
    server, channel = await _serve()
    async with channel:
        error: Any = await raises_async(
            grpc.aio.AioRpcError, channel.unary_unary("/t/slow")(b"", timeout=0.2)
        )
        assert error.code() is grpc.StatusCode.DEADLINE_EXCEEDED
        call = channel.unary_unary("/t/slow")(b"")
        await asyncio.sleep(0.05)
        call.cancel()
        await raises_async(asyncio.CancelledError, call)
    await soon(server.stop(1))
