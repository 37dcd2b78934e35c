import subprocess
import sys
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2]


def bench(*arguments: str, path: list[Path]) -> subprocess.CompletedProcess[str]:
    code = f"import sys; sys.path[:] = [p for p in sys.path if not p.startswith({str(PROJECT)!r}) or 'site-' in p]"
    code += f" + {[str(each) for each in path]}; from uringloop.__main__ import main; sys.exit(main(sys.argv[1:]))"
    command = [sys.executable, "-c", code, "bench", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=30)


def test_in_the_source_tree_it_is_the_benchmarks() -> None:
    ended = bench("--list", path=[PROJECT])
    assert ended.returncode == 0, ended.stderr
    assert "tcp-streams" in ended.stdout


def test_outside_the_source_tree_bench_says_where_the_benchmarks_are(tmp_path: Path) -> None:
    import uringloop

    (tmp_path / "uringloop").symlink_to(Path(uringloop.__file__).parent)
    ended = bench(path=[tmp_path])
    assert ended.returncode == 2, ended.stdout
    assert "source tree" in ended.stderr
