"""The wheel of python-liburing is compiled for AVX-512: on a processor without it, the first operation of uringloop.ops
killed the process with SIGILL. The import refuses it instead, before anything is loaded."""

from __future__ import annotations

import hashlib
import importlib.util
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

import uringloop

CPU = "processor\t: {}\nmodel name\t: A processor\nflags\t\t: fpu vme {}\nbogomips\t: 1\n\n"
WITH = "avx2 avx512f avx512dq avx512bw avx512vl"
MACHINES = {
    "all have it": ([WITH, WITH], True),
    "none has it": (["avx2", "avx2"], False),
    "half of it": (["avx2 avx512f", "avx2 avx512f"], False),
    "one of two": ([WITH, "avx2"], False),
    "another architecture": ([], False),
}
needs_liburing = pytest.mark.skipif(
    importlib.util.find_spec("liburing") is None, reason="python-liburing is not installed"
)


def load_processor() -> Any:
    """By its path: where the import is refused, so is that of its package."""
    path = Path(uringloop.__file__).with_name("ops") / "processor.py"
    spec = importlib.util.spec_from_file_location("processor", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def installed_digest(library: Path) -> str:
    return hashlib.sha256(library.read_bytes()).hexdigest()


@pytest.mark.parametrize("machine", MACHINES)
def test_a_library_for_avx_512_is_refused_on_a_processor_without_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, machine: str
) -> None:
    processor = load_processor()
    flags, runs = MACHINES[machine]
    cpuinfo, library = tmp_path / "cpuinfo", tmp_path / "liburing.so"
    cpuinfo.write_text("".join(CPU.format(i, flag) for i, flag in enumerate(flags)))
    library.write_bytes(b"compiled for its author's machine")
    assert processor.refusal(library, cpuinfo) is None  # whoever compiled it here
    monkeypatch.setitem(processor.NEED_AVX512, installed_digest(library), "2026.3.30")
    refused = processor.refusal(library, cpuinfo)
    assert (refused is None) == runs
    if refused is not None:
        assert "AVX-512" in refused
        assert "Build python-liburing" in refused


def test_a_processor_that_cannot_be_read_counts_as_one_without_features(tmp_path: Path) -> None:
    processor = load_processor()
    assert processor.features(tmp_path / "nothing") == set()


@needs_liburing
def test_the_import_is_refused_before_the_library_is_loaded(program: Any) -> None:
    code = """
import hashlib, pathlib, sys, importlib.util
import uringloop
spec = importlib.util.find_spec("liburing")
library = pathlib.Path(spec.submodule_search_locations[0], "liburing.so")
read_text = pathlib.Path.read_text
def without(path, *arguments, **named):
    text = read_text(path, *arguments, **named)
    return text.replace("avx512", "hidden") if str(path) == "/proc/cpuinfo" else text
pathlib.Path.read_text = without
hash = hashlib.sha256
hashlib.sha256 = lambda data: type("Known", (), {"hexdigest": lambda self: KNOWN})()
KNOWN = "47ff9121a8352a805d156dff9a5f1e71fe2784ef2d2b3b70719342dd45db70ed"
for _ in range(2):
    try:
        uringloop.ops
    except ImportError as error:
        print(error.name, error.path == str(library), "SIGILL" in str(error), "liburing" in sys.modules)
"""
    assert program(code).stdout == "liburing True True False\n" * 2


@needs_liburing
@pytest.mark.skipif(shutil.which("objdump") is None, reason="there is no disassembler")
def test_the_table_lists_the_installed_library_if_it_needs_avx_512() -> None:
    """A new wheel of python-liburing that needs AVX-512 has to be entered; one that does not must not be there."""
    processor = load_processor()
    library = processor.installed()
    assert library is not None
    text = subprocess.run(
        ["objdump", "-d", "--no-show-raw-insn", library], capture_output=True, text=True, check=True
    ).stdout
    needs = re.search(r"%zmm|%k[0-7]\b|%[xy]mm(1[6-9]|2\d|3[01])", text) is not None
    assert (installed_digest(library) in processor.NEED_AVX512) == needs
