"""A package's own test suite that is made of unittest modules and comes installed with the package."""

from __future__ import annotations

import fnmatch
import importlib
import logging
import os
import unittest
from dataclasses import dataclass
from pathlib import Path

from compat import archives
from compat.suite import Suite

_INJECT = Path(__file__).resolve().parent.parent / "inject"


@dataclass(frozen=True, kw_only=True)
class UnittestSuite(Suite):
    """A process for each of its modules."""

    name: str
    # where the archive, and so the package, has them
    files: str
    leave_out: tuple[str, ...] = ()
    # loggers that the suite's own runner silences
    silent: tuple[str, ...] = ()

    def modules(self) -> list[str]:
        root = archives.fetch(self.name, self.version)
        found = sorted(path.stem for path in root.glob(self.files))
        return [
            module
            for module in found
            if not any(fnmatch.fnmatchcase(module, rule) for rule in self.leave_out)
        ]

    def load(self, module: str, loop: str) -> unittest.TestSuite:
        for logger in self.silent:
            logging.getLogger(logger).setLevel(logging.CRITICAL)
        os.environ["PYTHONPATH"] = str(_INJECT)
        os.environ.pop("PYTHONSAFEPATH", None)  # the programs it starts lie in the folder it starts them in
        return unittest.defaultTestLoader.loadTestsFromModule(
            importlib.import_module(self.id_prefix + module)
        )
