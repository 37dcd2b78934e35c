"""Stands in for aiofiles: the same names from uringloop.aiofiles_compat, for aiofiles' own test suite."""

import importlib
import sys

from uringloop.aiofiles_compat import *  # noqa: F403

for name in ("base", "os", "ospath", "tempfile", "threadpool"):
    globals()[name] = sys.modules[f"aiofiles.{name}"] = importlib.import_module(
        f"uringloop.aiofiles_compat.{name}"
    )
