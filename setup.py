"""Compiles every uringloop/**/*.pyx, and links all of them into one shared object; all else is in pyproject.toml.

    python setup.py build_ext --inplace            release build, beside the sources, its name carries the tag
    URINGLOOP_BUILD=debug python setup.py build    debug build, a complete package in build/debug-<tag>/

Both kinds, and every Python, share the generated C in build/cython-*.
With URINGLOOP_WERROR=1 warnings are errors.
"""

import fcntl
import functools
import hashlib
import os
import sys
import sysconfig
from concurrent.futures import ThreadPoolExecutor
from glob import glob
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build import build
from setuptools.command.build_ext import build_ext
from setuptools.command.build_py import build_py
from setuptools.errors import LinkError
from setuptools.modified import newer_group

DEBUG = os.environ.get("URINGLOOP_BUILD", "release") == "debug"
WERROR = os.environ.get("URINGLOOP_WERROR", "") not in ("", "0")
JOBS = os.cpu_count() or 1
TAG = f"{sys.implementation.cache_tag}{sys.abiflags}"
DEBUG_ONLY = {
    "uringloop._core.engine.fake",
    "uringloop._core.handoff.steps",
}  # what tests alone use has no place in a release

LAYOUT = "uringloop/_compiled.ld"
SHARED = "uringloop._cython"  # what Cython adds to every module, once: its class of functions, for one

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

# Hidden visibility: only one init function is exported; modules reach each other through capsules.
# no-strict-aliasing: memory shared with the kernel, sockaddr and cmsg are read through casts.
# function-sections: the linker puts side by side what an import runs (_compiled.ld).
# no-plt: calls into the interpreter go through the GOT directly, one jump less each.
COMPILE = ["-fvisibility=hidden", "-ffunction-sections", "-fno-strict-aliasing", "-fno-plt", "-Wall"]
COMPILE += ["-O1", "-g", "-UNDEBUG"] if DEBUG else ["-O3", "-g0"]
# Generated code is left with unused names where assertions are off.
COMPILE += ["-Wno-unused-function", "-Wno-unused-variable"]
# CPython's own headers warn of their deprecated parts.
COMPILE += ["-Wno-deprecated-declarations", "-Werror"] if WERROR else []
MACROS = [("URINGLOOP_DEBUG", "1" if DEBUG else "0"), ("CYTHON_NO_PYINIT_EXPORT", "1")]
MACROS += [] if DEBUG else [("CYTHON_WITHOUT_ASSERTIONS", "1")]


def init_function(module: str) -> str:
    """Its name in the shared object: Cython's own says the last part of the module's name only."""
    return "init_" + module.replace(".", "_")


def module(name: str, source: str) -> Extension:
    last = name.split(".")[-1]
    macros = [(f"PyInit_{last}", init_function(name)), ("UR_EXEC", f"__pyx_pymod_exec_{last}")]
    options = [*COMPILE, "-include", "uringloop/_compiled.h"]
    return Extension(name, [source], define_macros=MACROS + macros, extra_compile_args=options)


def modules() -> list[Extension]:
    """What Cython compiles, one for each .pyx; none of them is linked by itself."""
    sources = sorted(glob("uringloop/**/*.pyx", recursive=True))
    names = {source.removesuffix(".pyx").replace("/", "."): source for source in sources}
    return [module(name, source) for name, source in names.items() if DEBUG or name not in DEBUG_ONLY]


def write_table(path: Path, names: list[str]) -> None:
    """The modules that the shared object holds and their folders, for _compiled.c; left alone if it says so already."""
    rows = {name: f'UR_MODULE("{name}", {init_function(name)})\n' for name in names}
    for name in names:
        for folder in list(Path(*name.split(".")).parents)[:-2]:
            if not (folder / "__init__.py").exists():
                place = "/".join(folder.parts[1:])
                rows[".".join(folder.parts)] = f'UR_FOLDER("{".".join(folder.parts)}", "{place}")\n'
    table = "".join(rows[name] for name in sorted(rows))
    if not path.exists() or path.read_text() != table:
        path.write_text(table)


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
        made_with = hashlib.sha256(repr((DIRECTIVES, SHARED)).encode()).hexdigest()[:8]
        generated = f"build/cython-{Cython.__version__}-{made_with}"
        self.modules = cythonize(
            [*modules(), module(SHARED, SHARED.replace(".", "/") + ".c")],
            build_dir=generated,
            compiler_directives=DIRECTIVES,
            nthreads=JOBS,
            shared_utility_qualified_name=SHARED,
            shared_utility_features_disabled=["MemoryView"],
        )
        table = Path(generated, f"modules-{'debug' if DEBUG else 'release'}.h")
        write_table(table, [module.name for module in self.modules])
        finder = Extension(
            "uringloop._compiled",
            ["uringloop/_compiled.c"],
            define_macros=[("UR_MODULES", f'"{table.name}"')],
            include_dirs=[generated],
            extra_compile_args=COMPILE,
            depends=[str(table)],
        )
        self.modules.append(finder)
        self.headers = sorted(glob("uringloop/**/*.h", recursive=True))
        (whole,) = self.distribution.ext_modules
        whole.sources = [source for module in self.modules for source in module.sources]
        whole.depends = [*self.headers, "setup.py", LAYOUT, *finder.depends]
        super().finalize_options()

    def build_extension(self, whole: Extension) -> None:
        """Compiles what has changed, each module by itself, and links all of them."""
        target = self.get_ext_fullpath(whole.name)
        if not self.force and not newer_group([*whole.sources, *whole.depends], target, "newer"):
            return
        with ThreadPoolExecutor(self.parallel) as pool:
            objects = list(pool.map(self.compile_module, self.modules))
        link = functools.partial(
            self.compiler.link_shared_object, objects, target, build_temp=self.build_temp, target_lang="c"
        )
        try:
            link(extra_postargs=[f"-Wl,-T,{LAYOUT}"])
        except LinkError:  # another linker than GNU's and LLVM's
            link()

    def compile_module(self, module: Extension) -> str:
        (source,) = module.sources
        (compiled,) = self.compiler.object_filenames([source], output_dir=self.build_temp)
        needs = [source, *self.headers, "setup.py", *(name for name in module.depends if name.endswith(".h"))]
        if self.force or newer_group(needs, compiled, "newer"):
            self.compiler.compile(
                [source],
                output_dir=self.build_temp,
                macros=module.define_macros,
                include_dirs=["uringloop/_core", *module.include_dirs],
                extra_postargs=module.extra_compile_args,
            )
        return compiled

    def copy_extensions_to_source(self) -> None:
        """Also drops shared objects that earlier builds for this Python have left beside the sources."""
        super().copy_extensions_to_source()
        suffix = sysconfig.get_config_var("EXT_SUFFIX")
        for path in Path("uringloop").glob(f"**/*{suffix}"):
            if path.name != f"_compiled{suffix}":
                path.unlink()


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
    setup(
        ext_modules=[Extension("uringloop._compiled", [])],
        cmdclass={"build": Build, "build_ext": BuildExt, "build_py": BuildPy},
    )
