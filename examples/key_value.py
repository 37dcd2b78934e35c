"""A store that keeps its promises: each value is on the disk before `put` returns; a log file and an index of it."""

import asyncio
import json
import tempfile
from typing import Any

import uringloop


class Store:
    def __init__(self, path: str) -> None:
        self.path = path
        self.places: dict[
            str, tuple[int, int]
        ] = {}  # where the newest record of a key begins, and its length

    async def __aenter__(self) -> "Store":
        self.file = await uringloop.open_file(self.path, "a+b")
        await self.file.seek(0)
        end = 0
        async for record in self.file:
            self.places[json.loads(record)[0]] = (end, len(record))
            end += len(record)
        self.end = end
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.file.close()

    async def put(self, key: str, value: Any) -> None:
        record = json.dumps([key, value]).encode() + b"\n"
        place, self.end = (self.end, len(record)), self.end + len(record)
        await self.file.write(record)
        await self.file.fdatasync()  # shared by all tasks that put at the same time
        self.places[key] = place

    async def get(self, key: str) -> Any:
        offset, length = self.places[key]
        return json.loads(await self.file.pread(length, offset))[1]  # any number at once


async def main() -> None:
    with tempfile.NamedTemporaryFile() as place:
        async with Store(place.name) as store:
            await asyncio.gather(*(store.put(f"user:{i % 10}", {"visits": i}) for i in range(50)))
        async with Store(place.name) as store:  # after a restart
            values = await asyncio.gather(*(store.get(f"user:{i}") for i in range(10)))
            print(len(values), "users,", sum(value["visits"] for value in values), "visits")


if __name__ == "__main__":
    uringloop.run(main())
