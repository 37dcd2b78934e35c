from pathlib import Path

from tests.examples.programs import output_of


def test_it_finds_the_lines(tmp_path: Path) -> None:
    (tmp_path / "deep/er").mkdir(parents=True)
    (tmp_path / "deep/er/one").write_text("a\nneedle here\nneedle\n")
    (tmp_path / "two").write_bytes(b"\xff needle\n")
    assert output_of("grep.py", "needle", tmp_path).splitlines() == [
        f"{tmp_path}/two:1: \ufffd needle",
        f"{tmp_path}/deep/er/one:2: needle here",
        f"{tmp_path}/deep/er/one:3: needle",
    ]
