"""FastAPI and Starlette applications under uvicorn, asked by HTTPX."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
from fastapi import BackgroundTasks, FastAPI, Request, UploadFile, WebSocket
from starlette.responses import FileResponse, StreamingResponse
from starlette.staticfiles import StaticFiles
from websockets.asyncio.client import connect

from compat.apps.helpers import child_environment, free_port, loop_kind, uvicorn_serving
from compat.behaviours import check
from compat.behaviours.helpers import CERTS, client_tls, soon

SERVED = "FastAPI + Starlette under uvicorn, HTTPX as client"
PROGRAM = "the uvicorn program"
EVENTS: list[str] = []


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    EVENTS.append("startup")
    yield
    EVENTS.append("shutdown")


app = FastAPI(lifespan=_lifespan)


@app.get("/loop")
async def loop() -> dict[str, str]:
    return {"loop": loop_kind()}


@app.get("/items/{number}")
def item(number: int) -> dict[str, int]:
    # not async: it runs in a thread
    return {"number": number}


@app.post("/echo")
async def echo(request: Request) -> Any:
    chunks = [chunk async for chunk in request.stream()]

    async def body() -> AsyncIterator[bytes]:
        for chunk in chunks:
            yield chunk

    return StreamingResponse(body(), media_type="application/octet-stream")


@app.post("/upload")
async def upload(file: UploadFile, tasks: BackgroundTasks) -> dict[str, int]:
    data = await file.read()
    tasks.add_task(EVENTS.append, f"uploaded {len(data)}")
    return {"size": len(data)}


@app.get("/file")
async def file(path: str) -> Any:
    return FileResponse(path)


@app.websocket("/ws")
async def websocket(socket: WebSocket) -> None:
    await socket.accept()
    while True:
        await socket.send_text((await socket.receive_text()).upper())


app.mount("/static", StaticFiles(directory=Path(__file__).parent))


@check(SERVED)
async def requests_of_every_kind() -> None:
    async with uvicorn_serving(app) as port, httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}") as client:
        assert (await client.get("/loop")).json() == {"loop": loop_kind()}
        assert (await client.get("/items/7")).json() == {"number": 7}
        assert (await client.get("/items/x")).status_code == 422
        message = os.urandom(3_000_000)
        assert (await client.post("/echo", content=message)).content == message
        reply = await client.post("/upload", files={"file": ("name", message[:500_000])})
        assert reply.json() == {"size": 500_000}
        assert "text" in (await client.get("/static/fastapi.py")).headers["content-type"]
        async with connect(f"ws://127.0.0.1:{port}/ws") as client_socket:
            await client_socket.send("shout")
            assert await soon(client_socket.recv()) == "SHOUT"
    assert EVENTS == ["startup", "uploaded 500000", "shutdown"], EVENTS


@check(SERVED)
async def files_are_sent_whole() -> None:
    with tempfile.NamedTemporaryFile() as big:
        big.write(os.urandom(4_000_000))
        big.flush()
        async with uvicorn_serving(app) as port, httpx.AsyncClient() as client:
            reply = await client.get(f"http://127.0.0.1:{port}/file", params={"path": big.name})
            assert reply.content == Path(big.name).read_bytes()


@check(SERVED)
async def many_requests_at_once() -> None:
    limits = httpx.Limits(max_connections=50)
    async with uvicorn_serving(app) as port:
        async with httpx.AsyncClient(
            base_url=f"http://127.0.0.1:{port}", limits=limits, timeout=30
        ) as client:
            replies = await asyncio.gather(*(client.get(f"/items/{number}") for number in range(500)))
            assert [reply.json()["number"] for reply in replies] == list(range(500))


@check(SERVED)
async def streamed_bodies_and_early_ends() -> None:
    async def chunks() -> AsyncIterator[bytes]:
        for number in range(50):
            yield b"%d" % number * 1000
            await asyncio.sleep(0)

    async with uvicorn_serving(app) as port, httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}") as client:
        async with client.stream("POST", "/echo", content=chunks()) as reply:
            body = b"".join([part async for part in reply.aiter_bytes()])
        assert body == b"".join(b"%d" % number * 1000 for number in range(50))
        # a client that goes away in the middle does no harm
        for _ in range(10):
            async with client.stream("POST", "/echo", content=bytes(5_000_000)) as reply:
                async for _part in reply.aiter_bytes():
                    break
        assert (await client.get("/items/1")).status_code == 200


@check(SERVED)
async def over_tls() -> None:
    certificate = {"ssl_certfile": CERTS / "localhost.pem", "ssl_keyfile": CERTS / "localhost.key"}
    async with uvicorn_serving(app, **certificate) as port, httpx.AsyncClient(verify=client_tls()) as client:
        message = os.urandom(1_000_000)
        reply = await client.post(f"https://localhost:{port}/echo", content=message)
        assert reply.content == message


async def _program(*options: str) -> tuple[Any, int]:
    port = free_port()
    root = str(Path(__file__).resolve().parents[2])
    command = ["-m", "uvicorn", "compat.apps.fastapi:app", "--port", str(port), "--app-dir", root, *options]
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *command,
        env=child_environment(),
        stderr=asyncio.subprocess.PIPE,
    )
    async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}") as client:
        for _ in range(150):
            try:
                reply = await client.get("/loop")
                break
            except httpx.ConnectError:
                await asyncio.sleep(0.1)
        else:
            raise AssertionError("uvicorn does not answer")
        assert reply.json() == {"loop": loop_kind()}, reply.json()
    return process, port


@check(PROGRAM)
async def program_serves_and_ends_on_sigterm() -> None:
    process, _ = await _program("--loop", "asyncio")
    process.send_signal(signal.SIGTERM)
    _, log = await soon(process.communicate(), 20)
    assert b"Application shutdown complete" in log, log


@check(PROGRAM)
async def program_with_two_workers() -> None:
    process, port = await _program("--loop", "asyncio", "--workers", "2")
    async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}") as client:
        replies = await asyncio.gather(*(client.get(f"/items/{number}") for number in range(50)))
        assert all(reply.status_code == 200 for reply in replies)
    process.send_signal(signal.SIGINT)
    await soon(process.communicate(), 20)
