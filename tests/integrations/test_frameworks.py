import sys

import pytest

from tests.integrations.servers import OURS, PROJECT, answer_of


@pytest.mark.parametrize("framework", ["fastapi", "quart", "starlette", "tornado"])
def test_a_framework_serves_from_our_loop(framework: str) -> None:
    pytest.importorskip(framework, reason="one of `make integrations`")
    example = PROJECT / f"examples/{framework}_app.py"
    assert example.name in ("fastapi_app.py", "quart_app.py", "starlette_app.py", "tornado_app.py")
    assert answer_of([sys.executable, str(example), "0"]) == OURS
