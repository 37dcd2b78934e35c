"""Makes each compiled class of uringloop in every way that skips its __init__, and calls everything it has.

    python objects_without_init.py PACKAGE WHERE PROGRESS [SKIPPED ...]

WHERE is "inside" or "outside" a running loop, or "functions", which calls the functions of the modules instead.
Before each call its name goes to the file PROGRESS, so that a crash has a name. Names in SKIPPED are not called.
`test_objects_without_init.py` runs this in a child process."""

from __future__ import annotations

import copy
import faulthandler
import gc
import importlib
import logging
import os
import pickle
import re
import resource
import signal
import sys
import types
import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import uringloop
from uringloop import _compiled

HEAP_TYPE = 1 << 9
LONGEST = 0.005  # seconds: what waits without a timeout is interrupted

ARGUMENTS: list[tuple[Any, ...]] = [
    (),
    (None,),
    (1,),
    (-1,),
    (2**70,),
    (b"x",),
    (bytearray(8),),
    ("x",),
    (print,),
    (None, None),
    (object(), object()),
    ([], {}),
    (1, 2, 3),
    (None, None, None, None),
]
OPERATIONS: list[Callable[[Any], object]] = [
    copy.copy,
    copy.deepcopy,
    pickle.dumps,
    hash,
    repr,
    iter,
    len,
    bool,
    bytes,
    int,
    next,
    vars,
    memoryview,
    gc.get_referents,
    lambda it: it == it,
    lambda it: it == object(),
    lambda it: it < it,
    lambda it: it + 1,
    lambda it: 1 - it,
    lambda it: it(),
    lambda it: it(1),
    lambda it: it[0],
]
# These do what they say to the process, not to the object.
NOT_CALLED = {"__class__", "__init_subclass__", "__new__", "__getattribute__", "__subclasshook__", "__del__"}


class Interrupted(BaseException):
    pass


def interrupt(*_: object) -> None:
    if Calls.interruptible:
        raise Interrupted


def compiled_modules(package: str) -> Iterator[types.ModuleType]:
    for name in _compiled.names():
        if package != "." and name.startswith(f"uringloop.{package}."):
            yield importlib.import_module(name)


def compiled_classes(package: str) -> Iterator[type[Any]]:
    for module in compiled_modules(package):
        for _, found in sorted(vars(module).items()):
            compiled = isinstance(found, type) and not found.__flags__ & HEAP_TYPE
            if compiled and found.__module__ == module.__name__:
                yield found
    if package == ".":
        yield uringloop.EventLoop


def makers(cls: type[Any]) -> Iterator[tuple[str, Callable[[], Any]]]:
    yield "__new__", lambda: cls.__new__(cls)
    for base in cls.__mro__[1:]:
        yield f"{base.__name__}.__new__", lambda base=base: base.__new__(cls)  # type: ignore[misc]
    yield "__call__", cls
    yield "type.__call__", lambda: type.__call__(cls)
    yield "careless subclass", lambda: type("Careless", (cls,), {"__init__": lambda *_: None})()
    yield "subclass", lambda: type("Subclass", (cls,), {})()


def what(name: str) -> str:
    """The class and the method of a call's name."""
    cls, by, rest = name.partition(" by ")
    rest = re.sub(r"( \d+| = \w+| deleted| and repr)$", "", rest)
    if not by:
        return re.sub(r"( \d+| = \w+| deleted| and repr)$", "", name)
    return cls + re.sub(r"^([A-Za-z]\w*\.)?__(new|call)__|^[a-z ]*subclass", "", rest)


class Calls:
    interruptible = False

    def __init__(self, progress: int, skipped: set[str]) -> None:
        self.progress, self.skipped, self.made = progress, skipped, 0

    def skips(self, name: str) -> bool:
        """A crash is skipped however the object was made."""
        return bool(self.skipped) and what(name) in self.skipped

    def call(self, name: str, function: Callable[..., object], *args: object) -> Any:
        if self.skips(name):
            return None
        self.made += 1
        os.pwrite(self.progress, f"{name}\n".ljust(160).encode(), 0)
        result = None
        try:
            Calls.interruptible = True
            signal.setitimer(signal.ITIMER_REAL, LONGEST, LONGEST)
            result = function(*args)
            self.drive(result)
        except BaseException:  # anything but a crash
            pass
        finally:
            Calls.interruptible = False
        signal.setitimer(signal.ITIMER_REAL, 0)
        return result

    def end(self) -> None:
        gc.collect()
        os.pwrite(self.progress, f"{self.made} calls".ljust(160).encode(), 0)
        os._exit(0)  # not the interpreter's end, which might wait for what was started

    def drive(self, result: Any) -> None:
        """A coroutine, or another thing to await: one step, and its end."""
        if isinstance(result, type | types.ModuleType) or not hasattr(result, "__await__"):
            return
        steps = result.__await__()
        with suppress(BaseException):
            next(steps)
        with suppress(BaseException):
            steps.throw(ValueError)
        close = getattr(steps, "close", None)
        if close is not None:
            close()

    def everything(self, label: str, make: Callable[[], Any]) -> None:
        """Each call on an object of its own, and then all of them on one."""
        found = self.call(label, make)
        if found is None:
            return
        names = [name for name in dir(found) if name not in NOT_CALLED]
        for once in (True, False):
            for name in names:
                self.attribute(f"{label}.{name}", name, found)
                if once:
                    found = self.call(label, make)
            for number, operation in enumerate(OPERATIONS):
                self.call(f"{label} operation {number}", operation, found)

    def attribute(self, label: str, name: str, found: Any) -> None:
        value = self.call(label, getattr, found, name)
        if callable(value):
            for number, args in enumerate(ARGUMENTS):
                self.call(f"{label} {number}", value, *args)
        for odd in (None, object(), 1):
            self.call(f"{label} = {type(odd).__name__}", setattr, found, name, odd)
        self.call(f"{label} deleted", delattr, found, name)
        self.call(f"{label} and repr", repr, found)


def unmade(package: str, calls: Calls) -> None:
    for cls in compiled_classes(package):
        for way, make in makers(cls):
            calls.everything(f"{cls.__module__}.{cls.__name__} by {way}", make)


def functions(package: str, calls: Calls) -> None:
    """What the modules have beside classes, with the same arguments."""
    for module in compiled_modules(package):
        for name, function in sorted(vars(module).items()):
            if (
                callable(function)
                and not isinstance(function, type)
                and function.__module__ == module.__name__
            ):
                for number, args in enumerate(ARGUMENTS):
                    calls.call(f"{module.__name__} by {name} {number}", function, *args)


def prepare(progress: str) -> int:
    """A process whose crash is reported; the descriptor of its progress."""
    warnings.simplefilter("ignore")
    logging.disable()
    sys.unraisablehook = lambda _: None
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    faulthandler.enable(os.dup(2))
    faulthandler.dump_traceback_later(60, exit=True)
    signal.signal(signal.SIGALRM, interrupt)
    descriptor = os.dup2(os.open(progress, os.O_RDWR | os.O_CREAT, 0o600), 200)
    for number in range(3):  # calls may close these, and print
        os.dup2(os.open(os.devnull, os.O_RDWR), number)
    return descriptor


if __name__ == "__main__":
    package, where, progress, *skipped = sys.argv[1:]
    calls = Calls(prepare(progress), set(skipped))
    if where == "inside":

        async def inside() -> None:
            unmade(package, calls)
            calls.end()  # here: the calls may have left the running loop in any state, waiting for a time for one

        uringloop.run(inside())
    elif where == "outside":
        unmade(package, calls)
    else:
        functions(package, calls)
    calls.end()
