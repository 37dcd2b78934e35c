"""Compiles every uringloop/**/*.pyx into an extension module of its own; all else is in pyproject.toml.

    python setup.py build_ext --inplace            release build, next to the sources (the ABI tag is in the name)
    URINGLOOP_BUILD=debug python setup.py build    debug build, a complete package in build/debug-<tag>/

Both kinds, and every Python, share the generated C in build/cython. Set URINGLOOP_WERROR=1 to make warnings errors.
"""

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
DEBUG_ONLY = {"uringloop._core.fake"}  # a simulated kernel has no place in a release

DIRECTIVES = {
    "language_level": 3,
    "freethreading_compatible": True,
    "boundscheck": False,
    "wraparound": False,
    "initializedcheck": False,
    "cdivision": True,
    "binding": True,  # real signatures and tracebacks for what Python sees
    "embedsignature": False,  # the .pyi stubs say it, and stubtest holds them to it
}

# Hidden visibility: only the init function of a module is exported; modules reach each other through capsules.
# no-strict-aliasing: memory shared with the kernel, sockaddr and cmsg are read through casts; the cost is not measurable.
# no-plt: calls into the interpreter go through the GOT directly, one jump less each.
COMPILE = ["-fvisibility=hidden", "-fno-strict-aliasing", "-fno-plt", "-Wall"]
COMPILE += ["-O1", "-g", "-UNDEBUG"] if DEBUG else ["-O3", "-g0"]
# Generated code may hold helpers that go unused; CPython's own headers warn of their deprecated parts.
COMPILE += ["-Wno-unused-function", "-Wno-deprecated-declarations", "-Werror"] if WERROR else []
MACROS = [("URINGLOOP_DEBUG", "1" if DEBUG else "0")]
MACROS += [] if DEBUG else [("CYTHON_WITHOUT_ASSERTIONS", "1")]


def extensions() -> list[Extension]:
    headers = sorted(glob("uringloop/**/*.h", recursive=True))
    modules = {path.removesuffix(".pyx").replace("/", "."): path for path in glob("uringloop/**/*.pyx", recursive=True)}
    return [
        Extension(
            name,
            [path],
            include_dirs=["uringloop/_core"],
            define_macros=MACROS,
            extra_compile_args=COMPILE,
            depends=[*headers, "setup.py"],
        )
        for name, path in sorted(modules.items())
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
        from Cython.Build import cythonize

        if self.parallel is None:
            self.parallel = JOBS
        self.distribution.ext_modules = cythonize(
            self.distribution.ext_modules,
            build_dir="build/cython",
            include_path=["uringloop/_core"],
            compiler_directives=DIRECTIVES,
            nthreads=JOBS,
        )
        super().finalize_options()


class BuildPy(build_py):
    """Also drops from the built copy what has left the source tree, so that no test and no wheel finds it there."""

    def run(self) -> None:
        super().run()
        if self.editable_mode:
            return
        suffix = sysconfig.get_config_var("EXT_SUFFIX")
        compiled = {f"{extension.name.replace('.', '/')}{suffix}" for extension in self.distribution.ext_modules}
        built = Path(self.build_lib)
        for path in built.glob("uringloop/**/*"):
            name = path.relative_to(built)
            if path.is_file() and "__pycache__" not in name.parts and not name.exists() and str(name) not in compiled:
                path.unlink()


if __name__ == "__main__":  # cythonize's worker processes import this file
    setup(ext_modules=extensions(), cmdclass={"build": Build, "build_ext": BuildExt, "build_py": BuildPy})
