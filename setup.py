"""Compiles every uringloop/**/*.pyx into an extension module of its own; all else is in pyproject.toml.

    python setup.py build_ext --inplace            release build, beside the sources, its names carry the tag
    URINGLOOP_BUILD=debug python setup.py build    debug build, a complete package in build/debug-<tag>/

Both kinds, and every Python, share the generated C in build/cython-*.
With URINGLOOP_WERROR=1 warnings are errors.
"""

import fcntl
import hashlib
import os
import sys
import sysconfig
from glob import glob
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build import build
from setuptools.command.build_ext import build_ext
from setuptools.command.build_py import build_py

DEBUG = os.environ.get("URINGLOOP_BUILD", "release") == "debug"
WERROR = os.environ.get("URINGLOOP_WERROR", "") not in ("", "0")
JOBS = os.cpu_count() or 1
TAG = f"{sys.implementation.cache_tag}{sys.abiflags}"
DEBUG_ONLY = {
    "uringloop._core.engine.fake",
    "uringloop._core.handoff.steps",
}  # what tests alone use has no place in a release

DIRECTIVES = {
    "language_level": 3,
    "freethreading_compatible": True,
    "boundscheck": False,
    "wraparound": False,
    "initializedcheck": False,
    "cdivision": True,
    "allow_none_for_extension_args": False,  # None has no fields: a method that is given it would read address 0
    "auto_pickle": False,  # nothing of the core can be pickled, and methods that say so are code too
    "binding": True,  # real signatures and tracebacks for what Python sees
    "embedsignature": False,  # the .pyi stubs say it, and stubtest holds them to it
}

# Hidden visibility: only a module's init function is exported; modules reach each other through capsules.
# no-strict-aliasing: memory shared with the kernel, sockaddr and cmsg are read through casts.
# no-plt: calls into the interpreter go through the GOT directly, one jump less each.
COMPILE = ["-fvisibility=hidden", "-fno-strict-aliasing", "-fno-plt", "-Wall"]
COMPILE += ["-O1", "-g", "-UNDEBUG"] if DEBUG else ["-O3", "-g0"]
# Generated code is left with unused names where assertions are off.
COMPILE += ["-Wno-unused-function", "-Wno-unused-variable"]
# CPython's own headers warn of their deprecated parts.
COMPILE += ["-Wno-deprecated-declarations", "-Werror"] if WERROR else []
MACROS = [("URINGLOOP_DEBUG", "1" if DEBUG else "0")]
MACROS += [] if DEBUG else [("CYTHON_WITHOUT_ASSERTIONS", "1")]


def extensions() -> list[Extension]:
    headers = sorted(glob("uringloop/**/*.h", recursive=True))
    sources = sorted(glob("uringloop/**/*.pyx", recursive=True))
    modules = {source.removesuffix(".pyx").replace("/", "."): source for source in sources}
    return [
        Extension(
            name,
            [source],
            include_dirs=["uringloop/_core"],
            define_macros=MACROS,
            extra_compile_args=COMPILE,
            depends=[*headers, "setup.py"],
        )
        for name, source in modules.items()
        if DEBUG or name not in DEBUG_ONLY
    ]


class Build(build):
    def finalize_options(self) -> None:
        kind = "debug" if DEBUG else "lib"
        self.build_lib = self.build_lib or f"build/{kind}-{TAG}"
        self.build_temp = self.build_temp or f"build/obj-{kind}-{TAG}"
        super().finalize_options()


class BuildExt(build_ext):
    def finalize_options(self) -> None:
        import Cython
        from Cython.Build import cythonize
        from Cython.Compiler import Options

        # Two builds at a time, of two Pythons say, would write the same C files: until this process ends.
        os.makedirs("build", exist_ok=True)
        self.lock = open("build/lock", "w")  # noqa: SIM115
        fcntl.flock(self.lock, fcntl.LOCK_EX)

        Options.warning_errors = WERROR
        if self.parallel is None:
            self.parallel = JOBS
        # Cython sees when a source is newer, not when it is another Cython or has other directives.
        made_with = hashlib.sha256(repr(DIRECTIVES).encode()).hexdigest()[:8]
        self.distribution.ext_modules = cythonize(
            self.distribution.ext_modules,
            build_dir=f"build/cython-{Cython.__version__}-{made_with}",
            compiler_directives=DIRECTIVES,
            nthreads=JOBS,
        )
        super().finalize_options()


class BuildPy(build_py):
    """Drops from the built copy what has left the source tree, so that no test or wheel finds it there."""

    def run(self) -> None:
        super().run()
        if self.editable_mode:
            return
        suffix = sysconfig.get_config_var("EXT_SUFFIX")
        expected = {Path(module.name.replace(".", "/") + suffix) for module in self.distribution.ext_modules}
        for path in Path(self.build_lib).glob("uringloop/**/*"):
            name = path.relative_to(self.build_lib)
            gone = not name.exists() and name not in expected
            if gone and path.is_file() and path.parent.name != "__pycache__":
                path.unlink()

    def byte_compile(self, files: list[str]) -> None:
        """Left to the first import."""


if __name__ == "__main__":  # cythonize's worker processes import this file
    setup(ext_modules=extensions(), cmdclass={"build": Build, "build_ext": BuildExt, "build_py": BuildPy})
