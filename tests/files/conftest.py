"""Places that files are in."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.files.hanging import HangingFilesystem


@pytest.fixture
def hanging(tmp_path: Path) -> Iterator[HangingFilesystem]:
    """A filesystem of its own at tmp_path, which answers only while it is told to."""
    try:
        filesystem = HangingFilesystem(tmp_path)
    except OSError as error:
        pytest.skip(f"takes root and FUSE: {error}")
    yield filesystem
    filesystem.close()
