"""`make counts`: do the hot paths take more instructions than they did?

    python -m tools.counts                        the working tree against the commit of the table
    python -m tools.counts --base HEAD            and against another commit
    python -m tools.counts --write WHY PATH...    what these paths take now is right: the table says so, and why

Counts by callgrind, the builds that are compared by the same tools and in the same run. More than 2 % above what a
path is held to is an error. Each path is counted with several layouts of memory, and the least is taken.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from pathlib import Path

from tools.counts import builds, callgrind, io_paths, table  # noqa: F401
from tools.counts.callgrind import Counted
from tools.counts.paths import PATHS
from tools.counts.table import LIMIT, Counts, Row, Table

TABLE = builds.PROJECT / "benchmarks/counts.json"
ENGINES = ("uring", "epoll")
LAYOUTS = range(3)
MORE_LAYOUTS = range(3, 9)  # for what seems to be worse

Found = dict[tuple[Path, str, str], Counted]  # by package, path and engine


def count_all(
    packages: list[Path], engines: list[str], layouts: range, paths: list[str], found: Found
) -> None:
    """Into `found`, where the least stays. As many at a time as there are cores."""
    library = builds.window()

    def one(work: tuple[int, str, Path]) -> tuple[Path, str, list[Counted]]:
        layout, engine, package = work
        return package, engine, callgrind.count(engine, layout, library, package, paths)

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for package, engine, counted in pool.map(one, product(layouts, engines, packages)):
            for path in counted:
                key = package, path.path, engine
                if key not in found or path.instructions < found[key].instructions:
                    found[key] = path


def counts_of(package: Path, found: Found) -> Counts:
    counts: Counts = {}
    for name in PATHS:
        engines = {
            engine: found[key].instructions for engine in ENGINES if (key := (package, name, engine)) in found
        }
        if engines:
            counts[name] = engines
    return counts


def engines_here(package: Path) -> list[str]:
    """Those that all paths can be done on; says why another is left out."""
    engines = []
    for engine in ENGINES:
        try:
            failed = callgrind.try_out(engine, builds.window(), package)
        except callgrind.NotCounted as error:
            if "UringUnavailable" not in str(error):
                raise
            print(f"left out: {engine}, which is refused here")
            continue
        if failed:
            sys.exit("\n".join(f"{path} on {engine} fails: {error}" for path, error in failed.items()))
        engines.append(engine)
    return engines


def suspects(packages: dict[str, Path], change: Path, known: Table | None, found: Found) -> list[Row]:
    """More than half of what is allowed."""
    now = counts_of(change, found)
    rows = [row for base in packages.values() for row in table.compare(counts_of(base, found), now, known)]
    return [row for row in rows if row.worse_by > LIMIT / 2]


def where(base: Counted, change: Counted) -> str:
    """The functions that take most of the difference."""
    names = {*base.functions, *change.functions}
    moved = {name: change.functions.get(name, 0.0) - base.functions.get(name, 0.0) for name in names}
    most = sorted(names, key=lambda name: -abs(moved[name]))[:5]
    return "\n".join(f"    {moved[name]:+8.0f}  {name}" for name in most if abs(moved[name]) >= 1)


def report(name: str, base: Path, change: Path, known: Table | None, found: Found) -> bool:
    """Prints it; whether all is well."""
    now = counts_of(change, found)
    rows = table.compare(counts_of(base, found), now, known)
    print(f"\nInstructions an operation, now and at {name}:\n")
    print("\n".join(table.lines(rows)))
    compared = {(row.path, row.engine) for row in rows}
    for path, engine in ((path, engine) for path, engines in now.items() for engine in engines):
        if (path, engine) not in compared:
            print(f"not compared: {path} on {engine}, which {name} can not do")
    for row in rows:
        if row.fails:
            print(f"\nworse: {row}; {LIMIT:.0f} % are allowed")
            print(where(found[base, row.path, row.engine], found[change, row.path, row.engine]))
    return not any(row.fails for row in rows)


def write(
    why: str, paths: list[str], known: Table | None, base: str, package: Path, change: Path, found: Found
) -> None:
    counts = counts_of(package, found)
    if known is None:
        numbers: Counts = {
            path: {engine: round(count) for engine, count in engines.items()}
            for path, engines in counts.items()
        }
        known = Table(base, why, builds.tools(), numbers)
    else:
        if not paths:
            sys.exit("which paths? Name them behind the reason")
        now = counts_of(change, found)
        for row in table.compare({path: counts.get(path, now[path]) for path in paths}, now, known):
            known.allow(row, why)
    TABLE.write_text(known.text())
    print(f"\nwritten: {TABLE.relative_to(builds.PROJECT)}")


def processor_time() -> float:
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    return spent.ru_utime + spent.ru_stime


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make counts", description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--base", help="compare with this commit, too")
    parser.add_argument("--write", metavar="WHY", help="change the table for this reason")
    parser.add_argument("paths", nargs="*", help="count these only", metavar="PATH")
    given = parser.parse_args()
    if unknown := [path for path in given.paths if path not in PATHS]:
        parser.error(f"no path is called {unknown[0]!r}; they are: {', '.join(PATHS)}")
    if given.write is not None and not given.write.strip():
        parser.error("the table is changed for a reason, which it says")
    if not shutil.which("valgrind"):
        parser.error("valgrind is missing: apt-get install valgrind")
    return given


def build_bases(names: list[str], change: Path) -> dict[str, Path]:
    """By the name of the commit; all were made with the same tools."""
    if not names:
        sys.exit("there is no table: --base COMMIT --write WHY makes the first one")
    if missing := [name for name in names if not builds.commit_of(name)]:
        sys.exit(f"{missing[0]} is not a commit of this clone")
    packages = {name: builds.build(builds.commit_of(name)) for name in names}
    for name, package in packages.items():
        if (ours := builds.made_by(change)) != (theirs := builds.made_by(package)):
            sys.exit(f"the working tree's build is of other tools: `make clean`\n{ours}\n{name}: {theirs}")
    return packages


def main() -> int:
    begun = time.monotonic()
    given = arguments()
    known = table.read(TABLE) if TABLE.exists() else None
    change = builds.working_tree()
    packages = build_bases([*filter(None, [known and known.commit, given.base])], change)
    engines = engines_here(change)
    for package, engine in product(packages.values(), engines):
        callgrind.try_out(engine, builds.window(), package)
    found: Found = {}
    everything = [*packages.values(), change]
    count_all(everything, engines, LAYOUTS, given.paths, found)
    if again := suspects(packages, change, known, found):
        for engine in engines:
            if paths := sorted({row.path for row in again if row.engine == engine}):
                count_all(everything, [engine], MORE_LAYOUTS, paths, found)
    fine = [
        report(name, package, change, known if known and name == known.commit else None, found)
        for name, package in packages.items()
    ]
    if given.write:
        name, package = next(iter(packages.items()))
        write(given.write, given.paths, known, builds.commit_of(name), package, change, found)
    print(f"\n{time.monotonic() - begun:.0f} s, {processor_time():.0f} s of processors")
    return 0 if all(fine) or given.write else 1


if __name__ == "__main__":
    sys.exit(main())
