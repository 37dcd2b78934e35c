import asyncio
import subprocess
import sys

import pytest

from tests.examples.programs import EXAMPLES


@pytest.mark.parametrize("way", ["run", "runner", "policy", "install"])
def test_each_way_to_switch_gives_our_loop(way: str) -> None:
    # Python 3.14 and 3.15 warn of policies, and would of our use of them.
    command = [sys.executable, "-W", "error", "-W", "ignore::DeprecationWarning", EXAMPLES / "switching.py"]
    if way == "policy" and not hasattr(asyncio, "AbstractEventLoopPolicy"):
        pytest.skip("Python 3.16 has no policies")
    assert subprocess.check_output([*map(str, command), way], text=True) == "EventLoop\n"
