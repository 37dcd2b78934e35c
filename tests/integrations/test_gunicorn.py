import subprocess
import sys

import pytest

from tests.integrations.servers import OURS, answer_of, documented

pytest.importorskip("gunicorn", reason="one of `make integrations`")
# The control server writes to the home folder, and is of no use here.
TO_ANY_PORT = ["--bind", "127.0.0.1:0", "--no-control-socket"]


@pytest.mark.parametrize("worker", ["UvicornWorker", "ASGIWorker", "AiohttpWorker"])
def test_each_worker_runs_on_our_loop(worker: str) -> None:
    needed = {
        "UvicornWorker": "uvicorn_worker",
        "ASGIWorker": "gunicorn.workers.gasgi",
        "AiohttpWorker": "aiohttp",
    }
    pytest.importorskip(needed[worker], reason="one of `make integrations`")
    assert answer_of([*documented(f"gunicorn -k uringloop.workers.{worker}"), *TO_ANY_PORT]) == OURS


def test_a_missing_package_is_named() -> None:
    code = "import sys; sys.modules['uvicorn_worker'] = None\nfrom uringloop.workers import UvicornWorker"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "needs uvicorn_worker: pip install gunicorn uvicorn-worker" in run.stderr
