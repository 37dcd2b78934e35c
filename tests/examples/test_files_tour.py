from pathlib import Path

from tests.examples.programs import output_of


def test_the_tour_reads_back_what_it_wrote(tmp_path: Path) -> None:
    assert output_of("files_tour.py", tmp_path).splitlines() == [
        "one",
        "two",
        "4 blocks, read at once; 16384 bytes",
    ]
    assert (tmp_path / "cache/settings.json").read_text() == "{}\n"
