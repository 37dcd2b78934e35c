"""A check that this machine's processor can run the installed python-liburing. It reads the library's file and
/proc/cpuinfo without loading the library, because an instruction that the processor lacks kills the process.

The two wheels in the table were compiled for the processor of their author, and copy entries with AVX-512. The check
trusts builds with any other digest: a local build fits this machine, and later wheels come from a tool that compiles
for any x86-64. A test compares the table with the instructions of the installed library."""

from __future__ import annotations

import hashlib
import re
from importlib.util import find_spec
from pathlib import Path

CPUINFO = Path("/proc/cpuinfo")
AVX512 = {"avx512f", "avx512bw", "avx512vl"}
# SHA-256 of liburing.so, and the version whose wheel on PyPI has it.
NEED_AVX512 = {
    "6951c52e5ee35d24e2e5b9fe9bfda3ff6274c9d1cdcfa58299d0623212c5cf94": "2026.3.25",
    "47ff9121a8352a805d156dff9a5f1e71fe2784ef2d2b3b70719342dd45db70ed": "2026.3.30",
}


def check() -> None:
    """Raise ImportError if the installed library would kill the process."""
    found = installed()
    if found is not None:
        refused = refusal(found, CPUINFO)
        if refused is not None:
            raise ImportError(refused, name="liburing", path=str(found))


def installed() -> Path | None:
    spec = find_spec("liburing")
    for folder in (spec and spec.submodule_search_locations) or ():
        library = Path(folder, "liburing.so")
        if library.is_file():
            return library
    return None


def refusal(library: Path, cpuinfo: Path) -> str | None:
    """Why the library must not be loaded here, and the remedy; None if it may be."""
    version = NEED_AVX512.get(hashlib.sha256(library.read_bytes()).hexdigest())
    if version is None or features(cpuinfo) >= AVX512:
        return None
    return (
        f"the wheel of python-liburing {version} is compiled for processors with AVX-512, and this one has none: the "
        "first operation would kill the process (SIGILL). Build python-liburing on this machine, from "
        "https://github.com/YoSTEALTH/Liburing (pip --no-binary cannot: PyPI has no source archive of it); "
        "uringloop's documentation, Files, Any operation, says how"
    )


def features(cpuinfo: Path) -> set[str]:
    """The features that all of this machine's processors have; none if the kernel doesn't list them."""
    try:
        lines = re.findall(r"^flags\s*:(.*)$", cpuinfo.read_text(), re.MULTILINE)
    except OSError:
        lines = []
    return set.intersection(*(set(line.split()) for line in lines)) if lines else set()
