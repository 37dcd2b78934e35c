import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.integrations.servers import PAGE, documented

pytest.importorskip("ipykernel", reason="one of `make integrations`")
pytest.importorskip("jupyter_client", reason="one of `make integrations`")

CLIENT = """
from jupyter_client.manager import start_new_kernel

manager, client = start_new_kernel(startup_timeout=60, kernel_name="ours")
try:
    client.execute_interactive(
        "import asyncio; await asyncio.sleep(0); print(type(asyncio.get_running_loop()).__module__)", timeout=60
    )
finally:
    client.stop_channels()
    manager.shutdown_kernel(now=True)
"""


def test_ipython_awaits_on_our_loop(tmp_path: Path) -> None:
    cell = "import asyncio; await asyncio.sleep(0); print(type(asyncio.get_running_loop()).__module__)"
    command = [*documented("python -m uringloop run -m IPython"), "--no-banner", "-c", cell]
    environment = {**os.environ, "IPYTHONDIR": str(tmp_path)}
    run = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)
    assert (run.stdout, run.returncode) == ("uringloop.loop\n", 0), run.stderr


def test_a_kernel_of_the_page_runs_a_cell_on_our_loop(tmp_path: Path) -> None:
    block = re.search(r"^```json\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    assert block is not None
    spec = json.loads(block[1])
    spec["argv"][0] = sys.executable
    (tmp_path / "kernels/ours").mkdir(parents=True)
    (tmp_path / "kernels/ours/kernel.json").write_text(json.dumps(spec))
    environment = {**os.environ, "JUPYTER_PATH": str(tmp_path), "IPYTHONDIR": str(tmp_path / "ipython")}
    run = subprocess.run(
        [sys.executable, "-c", CLIENT], env=environment, capture_output=True, text=True, timeout=100
    )
    assert run.stdout == "uringloop.loop\n", run.stderr
