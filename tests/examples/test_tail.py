from pathlib import Path

from tests.examples.programs import running


def test_it_prints_whole_lines_that_are_appended(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("old\n")
    with running("tail.py", log) as output, log.open("a", buffering=1) as writer:
        assert output.readline() == f"watching {log}\n"
        print("new", file=writer)
        assert output.readline() == "log: new\n"
        writer.write("half ")
        writer.flush()
        print("a line", file=writer)
        assert output.readline() == "log: half a line\n"
