from pathlib import Path

from tests.examples.programs import output_of


def test_it_counts_words(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("one two\nthree\n")
    assert output_of("read_lines.py", tmp_path / "a").split()[0] == "3"
