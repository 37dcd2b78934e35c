"""A journal that survives a crash: each record is written and on the disk before `append` returns."""

import asyncio
import tempfile

import uringloop


class Journal:
    def __init__(self, path: str) -> None:
        self.path = path

    async def __aenter__(self) -> "Journal":
        self.file = await uringloop.open_file(self.path, "ab")
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.file.close()

    async def append(self, record: bytes) -> None:
        """Tasks that append at the same time share the wait for the disk: it comes after all their writes."""
        await self.file.write(record + b"\n")
        await self.file.fdatasync()


async def main() -> None:
    with tempfile.NamedTemporaryFile() as place:
        async with Journal(place.name) as journal:
            await asyncio.gather(*(journal.append(b"record %d" % i) for i in range(20)))
        print(len(place.read().splitlines()), "records")


if __name__ == "__main__":
    uringloop.run(main())
