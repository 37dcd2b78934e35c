"""aiofiles' own test suite: on uringloop its package is uringloop.aiofiles_compat, through a stand-in.

On any other loop, and so in the control, it is the real one.
"""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from compat.recorder import Recorder
from compat.suites.pytest import PytestSuite

_SHIM = Path(__file__).resolve().parent.parent / "shims" / "aiofiles_stand_in"


@dataclass(frozen=True, kw_only=True)
class AiofilesSuite(PytestSuite):
    """Its files run by pytest, every coroutine a test."""

    def run(self, spec: dict[str, Any], recorder: Recorder) -> None:
        if spec["loop"].startswith("uringloop"):
            # Behind the suite's own folder, which has no package of that name, and before the installed one.
            sys.path.insert(0, str(_SHIM))
            os.environ["PYTHONPATH"] = str(_SHIM)
        super().run(spec, recorder)
