"""Compiles the C programs of the benchmark at first use, into the user's cache, keyed by their source."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from functools import cache
from pathlib import Path

from benchmarks.row import Skipped

SOURCES = Path(__file__).parent / "native"


def cache_folder() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    folder = Path(base) / "uringloop-benchmarks"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@cache
def native_program(name: str) -> Path:
    """The path of the compiled program; Skipped when there is no C compiler or it refuses."""
    compiler = os.environ.get("CC") or shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        raise Skipped("no C compiler for the client")
    texts = [path.read_bytes() for path in (SOURCES / f"{name}.c", *sorted(SOURCES.glob("*.h")))]
    key = hashlib.sha256(b"\0".join([compiler.encode(), *texts])).hexdigest()[:16]
    program = cache_folder() / f"{name}-{key}"
    if not program.exists():
        partial = program.with_suffix(f".{os.getpid()}")
        command = [*compiler.split(), "-O2", "-o", str(partial), str(SOURCES / f"{name}.c"), "-ldl"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise Skipped(f"{name}.c does not compile: {done.stderr.strip()[:200]}")
        partial.rename(program)
    return program


@cache
def certificate() -> tuple[Path, Path]:
    """A self-signed certificate for localhost and its key, made by openssl at first use."""
    certificate_path, key_path = cache_folder() / "certificate.pem", cache_folder() / "key.pem"
    if certificate_path.exists() and key_path.exists():
        return certificate_path, key_path
    if shutil.which("openssl") is None:
        raise Skipped("no openssl to make a certificate")
    curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    subject = [
        "-subj",
        "/CN=localhost",
        "-addext",
        "subjectAltName=DNS:localhost,IP:127.0.0.1",
        "-days",
        "36500",
    ]
    files = ["-keyout", str(key_path), "-out", str(certificate_path)]
    command = ["openssl", "req", "-x509", *curve, *subject, *files]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise Skipped(f"openssl made no certificate: {done.stderr.strip()[-200:]}")
    return certificate_path, key_path
