"""Holds every uringloop/**/*.pyi against the compiled module beside it.

Every class of the core may be a base and has a layout of its own: what stubtest calls a disjoint base, and is
told to ignore. Further exceptions, each with its reason, go to tools/stubtest-allowlist.txt.
"""

import sys
import tempfile
from pathlib import Path

from mypy.stubtest import parse_options, test_stubs

from uringloop import _compiled

PROJECT = Path(__file__).resolve().parent.parent
ALLOWED = PROJECT / "tools/stubtest-allowlist.txt"


def main() -> int:
    stubs = sorted(PROJECT.glob("uringloop/**/*.pyi"))
    for stub in stubs:
        if not stub.with_suffix(".pyx").exists() and not stub.with_suffix(".c").exists():
            print(f"{stub.relative_to(PROJECT)}: a stub of no compiled module")
            return 1
    built = {_compiled.__name__, *_compiled.names()}
    modules = [str(stub.relative_to(PROJECT).with_suffix("")).replace("/", ".") for stub in stubs]
    modules = [module for module in modules if module in built]  # some are debug builds' only
    if not modules:
        print("no stubs yet")
        return 0
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as allowed:
        # Cython's own: examples for doctest, and what other modules cimport
        allowed.write(".*\\.(__test__|__pyx_capi__)\n" + (ALLOWED.read_text() if ALLOWED.exists() else ""))
        allowed.flush()
        options = ["--ignore-disjoint-bases", "--ignore-unused-allowlist", "--concise"]
        return test_stubs(parse_options([*options, "--allowlist", allowed.name, *modules]))


if __name__ == "__main__":
    sys.exit(main())
