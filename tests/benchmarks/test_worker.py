"""A worker that fails says why."""

import sys
from typing import Any

import pytest

from benchmarks.candidate import candidate_named
from benchmarks.row import Failed
from benchmarks.worker import Worker


def test_the_error_output_of_a_crashed_worker_is_kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    program = tmp_path / "python"
    program.write_text("#!/bin/sh\necho 'the cause' >&2; exit 3\n")
    program.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(program))
    worker = Worker(candidate_named("asyncio"))
    with pytest.raises(Failed, match="crashed: exit status 3: the cause"):
        worker.ask({}, 10)
    worker.close()
