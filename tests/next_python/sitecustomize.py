"""Hides what Python 3.16 removes from asyncio, from uringloop and its tests, in each process with this folder in
PYTHONPATH (`make next-python`). asyncio itself, pytest's plugins and other packages keep what they were written for."""

import importlib
import sys
from importlib.machinery import PathFinder
from types import ModuleType
from typing import Any

POLICIES = (
    "AbstractEventLoopPolicy",
    "DefaultEventLoopPolicy",
    "get_event_loop_policy",
    "set_event_loop_policy",
)
# Module -> the names that it loses, of all Pythons.
REMOVED = {
    "asyncio": (*POLICIES, "iscoroutinefunction"),
    "asyncio.events": (
        *POLICIES,
        *(f"_{name}" for name in POLICIES),
        "BaseDefaultEventLoopPolicy",
        "_BaseDefaultEventLoopPolicy",
        "_event_loop_policy",
    ),
    "asyncio.unix_events": (*POLICIES[:2], "_UnixDefaultEventLoopPolicy", "_DefaultEventLoopPolicy"),
    "asyncio.coroutines": ("iscoroutinefunction", "_iscoroutinefunction"),
}
KNOW_NOTHING_OF_THEM = (
    "uringloop",
    "tests",
    "compat",
    "benchmarks",
    "examples",
    "conftest",
    "test_",
    "__main__",
)


def asks() -> str:
    """The module that looks a name up. Compiled code has no frame: the module that has called or imported it counts."""
    frame: Any = sys._getframe(2)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("importlib"):
        frame = frame.f_back
    return str(frame.f_globals.get("__name__", ""))


class Hiding(ModuleType):
    """A module whose own code still finds all its names: only looking them up from elsewhere may fail."""

    hidden_names: frozenset[str]

    def __getattribute__(self, name: str) -> Any:
        hidden = super().__getattribute__("hidden_names")
        if name in hidden and asks().startswith(KNOW_NOTHING_OF_THEM):
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r} in Python 3.16")
        return super().__getattribute__(name)


def hide(module: Any, names: tuple[str, ...]) -> None:
    if hasattr(module, "__all__"):
        module.__all__ = [name for name in module.__all__ if name not in names]
    module.hidden_names = frozenset(names)
    module.__class__ = Hiding


def live_without_policies(asyncio: Any) -> None:
    """asyncio's own functions look the policy up by the names that go: let them do without one, as in Python 3.16."""
    events = asyncio.events
    policy = (getattr(events, "_get_event_loop_policy", None) or events.get_event_loop_policy)()

    def new_event_loop() -> Any:
        return asyncio.SelectorEventLoop()

    def set_event_loop(loop: Any) -> None:
        policy.set_event_loop(loop)

    for function in (new_event_loop, set_event_loop):
        setattr(events, function.__name__, function)
        setattr(asyncio, function.__name__, function)


class Finder:
    """Lets the finders after it find asyncio, and changes asyncio once its code has run."""

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> Any:
        if fullname != "asyncio":
            return None
        for finder in sys.meta_path[sys.meta_path.index(self) + 1 :]:
            spec = finder.find_spec(fullname, path, target)
            if spec is not None and spec.loader is not None:
                self.follow(spec.loader)
                return spec
        return None

    def follow(self, loader: Any) -> None:
        execute = loader.exec_module

        def exec_module(module: Any) -> None:
            execute(module)
            live_without_policies(module)
            for name, names in REMOVED.items():
                hide(importlib.import_module(name), names)

        loader.exec_module = exec_module


# Before the finder that finds asyncio, and after those that others put first: what they change comes after.
sys.meta_path.insert(sys.meta_path.index(PathFinder), Finder())
