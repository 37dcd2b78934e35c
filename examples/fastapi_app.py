"""A FastAPI application under uvicorn; it says which loop it runs on (needs fastapi, uvicorn). fastapi_app.py [PORT]"""

import asyncio
import sys

import uvicorn
from fastapi import FastAPI
from fastapi.responses import PlainTextResponse

app = FastAPI()


@app.get("/", response_class=PlainTextResponse)
async def which_loop() -> str:
    loop = type(asyncio.get_running_loop())
    return f"{loop.__module__}.{loop.__name__}\n"


if __name__ == "__main__":
    port = int(sys.argv[1]) if len(sys.argv) > 1 else 8000
    uvicorn.run(app, host="127.0.0.1", port=port, loop="uringloop:new_event_loop")
