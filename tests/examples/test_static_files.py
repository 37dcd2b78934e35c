import urllib.error
import urllib.request
from pathlib import Path

import pytest

from tests.examples.programs import port_of, running


def test_it_serves_the_folder_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret")
    folder = tmp_path / "public"
    folder.mkdir()
    (folder / "a file").write_bytes(bytes(range(256)) * 4096)
    with running("static_files.py", folder) as output:
        place = f"http://127.0.0.1:{port_of(output)}"
        with urllib.request.urlopen(f"{place}/a%20file", timeout=30) as answer:
            assert answer.read() == bytes(range(256)) * 4096
        for path in ("nothing", "../secret", "%2e%2e/secret", ""):
            with pytest.raises(urllib.error.HTTPError, match="404") as refused:
                urllib.request.urlopen(f"{place}/{path}", timeout=30)
            refused.value.close()
