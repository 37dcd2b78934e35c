"""Runs at the start of a Python process that inherits PYTHONPATH from `uringloop run`, before the process imports
asyncio. The process may be of another Python, and most never use asyncio: it imports uringloop only once a loop can be
chosen."""

import importlib
import os
import sys
from typing import Any

# The module after whose import uringloop.redirects changes something, and the function there that does it.
STEPS = {
    "asyncio": "change_asyncio",
    "uringloop": "change_asyncio",  # it imports asyncio, at a time when the step for asyncio can't import it
    "uvloop": "change_uvloop",
    "uvicorn.config": "change_uvicorn",
}


class ImportWatch:
    """A finder that finds no modules itself, but calls a function after the import of each module that it watches:
    `watched` maps the name of the module to the function."""

    def __init__(self, watched: Any) -> None:
        self.watched = watched

    def begin(self) -> None:
        """Watch from now on. The functions of modules that are imported already are called now."""
        sys.meta_path.insert(0, self)
        for name, changed in self.watched.items():
            if name in sys.modules and not importing(name):
                changed(sys.modules[name])

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if name not in self.watched:
            return None
        for finder in sys.meta_path[sys.meta_path.index(self) + 1 :]:
            find = getattr(finder, "find_spec", None)
            spec = None if find is None else find(name, path, target)
            if spec is not None:
                if spec.loader is not None:  # otherwise a folder without __init__.py, which has no code
                    self._follow(spec.loader)
                return spec
        return None

    def _follow(self, loader: Any) -> None:
        execute = loader.exec_module

        def exec_module(module: Any) -> None:
            execute(module)
            if module.__name__ in self.watched:  # one loader may load all modules of an archive
                self.watched[module.__name__](module)

        loader.exec_module = exec_module


def importing(name: str) -> bool:
    """Whether the module's code has begun to run, and has not ended."""
    spec = getattr(sys.modules.get(name), "__spec__", None)
    return bool(getattr(spec, "_initializing", False))


def step(name: str) -> Any:
    """Return a function for ImportWatch that calls `name` of uringloop.redirects, and imports that only then."""

    def call(module: Any) -> None:
        if importing("uringloop") and module.__name__ != "uringloop":
            return
        package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
        sys.path.append(os.path.dirname(package))  # this process may not find uringloop by itself
        try:
            redirects = importlib.import_module("uringloop.redirects")
        except ImportError as error:  # it runs another Python
            if name == "change_asyncio":
                print(f"uringloop run: {sys.executable} stays on asyncio: {error}", file=sys.stderr)
            return
        finally:
            sys.path.pop()
        getattr(redirects, name)(module)

    return call


def watch() -> None:
    """Redirect to uringloop what this process imports from now on, and what it has imported."""
    ImportWatch({name: step(function) for name, function in STEPS.items()}).begin()


def import_next(here: str) -> None:
    """Import the sitecustomize that this one hides, if there is one, and leave sys.path as it is without this one."""
    sys.path[:] = [folder for folder in sys.path if os.path.abspath(folder) != here]
    ours = sys.modules.pop("sitecustomize")
    try:
        importlib.import_module("sitecustomize")
    except ModuleNotFoundError as error:
        if error.name != "sitecustomize":
            raise
    finally:
        sys.modules.setdefault("sitecustomize", ours)  # the import of this file still looks there


if __name__ == "sitecustomize":
    watch()
    import_next(os.path.dirname(os.path.abspath(__file__)))
