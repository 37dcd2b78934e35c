"""Serves with uvicorn.run after uringloop.install(): installed.py PORT [NAME=VALUE]... for options of uvicorn.run."""

import sys
from typing import Any

import uvicorn

import uringloop

if __name__ == "__main__":
    uringloop.install()
    options: dict[str, Any] = {}
    for name, _, value in (given.partition("=") for given in sys.argv[2:]):
        options[name] = int(value) if value.isdigit() else value == "True" or value
    uvicorn.run("asgi:app", host="127.0.0.1", port=int(sys.argv[1]), **options)
