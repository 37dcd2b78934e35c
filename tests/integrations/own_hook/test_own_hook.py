"""Tests that are coroutines: pytest-asyncio makes the loop, by conftest.py's hook; fixtures and tests run on it."""

import asyncio
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.conftest import STOCK

pytestmark = pytest.mark.asyncio


@pytest_asyncio.fixture
async def port() -> AsyncIterator[int]:
    """Of a server that answers each line of one client with itself, backwards."""
    answered = asyncio.Event()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while line := await reader.readline():
            writer.write(line[-2::-1] + b"\n")
        writer.close()
        await writer.wait_closed()
        answered.set()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        yield server.sockets[0].getsockname()[1]
        await answered.wait()


async def test_the_loop_is_the_one_of_its_name(request: pytest.FixtureRequest) -> None:
    loop = asyncio.get_running_loop()
    name = request.node.callspec.id
    if name == STOCK:
        assert type(loop).__module__.startswith("asyncio.")
    else:
        assert type(loop).__module__ == "uringloop.loop" and loop._engine_name == name


async def test_a_fixture_and_its_test_share_the_loop(port: int) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"hello\n")
    assert await reader.readline() == b"olleh\n"
    writer.close()
    await writer.wait_closed()


async def test_one_failure_ends_the_other_tasks_of_a_group() -> None:
    never, ended = asyncio.Event(), []

    async def wait() -> None:
        try:
            await never.wait()
        finally:
            ended.append(asyncio.current_task())

    async def fail() -> None:
        raise ValueError

    with pytest.raises(ExceptionGroup) as raised:
        async with asyncio.TaskGroup() as group:
            waiting = group.create_task(wait())
            await asyncio.sleep(0)
            group.create_task(fail())
    assert raised.group_contains(ValueError) and ended == [waiting]
