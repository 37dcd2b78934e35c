"""Jupyter's ipykernel, started as a program, executing cells."""

from __future__ import annotations

import asyncio
from typing import Any

from jupyter_client.manager import AsyncKernelManager

from compat.apps.helpers import child_environment, loop_kind
from compat.behaviours import check
from compat.behaviours.helpers import raises_async, soon

ROW = "ipykernel"
KIND = "import asyncio; kind = type(asyncio.get_running_loop()); f'{kind.__module__}.{kind.__qualname__}'"


async def _kernel() -> tuple[Any, Any]:
    manager = AsyncKernelManager(kernel_name="python3")
    await soon(manager.start_kernel(env=child_environment()), 30)
    client = manager.client()
    client.start_channels()
    await soon(client.wait_for_ready(timeout=30), 40)
    return manager, client


async def _execute(client: Any, code: str) -> tuple[str, str]:
    """What the cell printed, and its value."""
    printed, value = [], ""
    request = client.execute(code, stop_on_error=False)
    while True:
        message = await soon(client.get_iopub_msg(timeout=20), 25)
        if message["parent_header"].get("msg_id") != request:
            continue
        content = message["content"]
        if message["msg_type"] == "stream":
            printed.append(content["text"])
        elif message["msg_type"] == "execute_result":
            value = content["data"]["text/plain"]
        elif message["msg_type"] == "error":
            raise AssertionError("\n".join(content["traceback"]))
        elif message["msg_type"] == "status" and content["execution_state"] == "idle":
            return "".join(printed), value


@check(ROW)
async def cells_run_on_the_loop_under_test() -> None:
    manager, client = await _kernel()
    try:
        assert (await _execute(client, "print('hello'); 6 * 7")) == ("hello\n", "42")
        assert (await _execute(client, KIND))[1].strip("'") == loop_kind()
        _, value = await _execute(client, "await asyncio.sleep(0.1, 'slept')")
        assert value == "'slept'"
        code = "import asyncio\np = await asyncio.create_subprocess_exec('echo', 'child', stdout=-1)\n"
        _, value = await _execute(client, code + "(await p.communicate())[0]")
        assert value == r"b'child\n'", value
        printed, _ = await _execute(client, "!echo from a shell")
        assert "from a shell" in printed
    finally:
        client.stop_channels()
        await soon(manager.shutdown_kernel(now=True), 20)


@check(ROW)
async def interrupted_cell_leaves_the_kernel_alive() -> None:
    manager, client = await _kernel()
    try:
        task = asyncio.create_task(_execute(client, "import time; time.sleep(30)"))
        await asyncio.sleep(0.5)
        await manager.interrupt_kernel()
        error = await raises_async(AssertionError, soon(task, 20))
        assert "KeyboardInterrupt" in str(error), error
        assert (await _execute(client, "1 + 1"))[1] == "2"
    finally:
        client.stop_channels()
        await soon(manager.shutdown_kernel(now=True), 20)
