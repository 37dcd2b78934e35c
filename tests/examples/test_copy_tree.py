from pathlib import Path

from tests.examples.programs import output_of


def test_it_copies_everything(tmp_path: Path) -> None:
    (tmp_path / "a/b/c").mkdir(parents=True)
    for i in range(50):
        (tmp_path / "a/b" / str(i)).write_text(str(i))
    assert output_of("copy_tree.py", tmp_path / "a", tmp_path / "z") == "50 files copied\n"
    assert sorted(p.name for p in (tmp_path / "z").rglob("*")) == sorted(
        p.name for p in (tmp_path / "a").rglob("*")
    )
    assert (tmp_path / "z/b/7").read_text() == "7"
