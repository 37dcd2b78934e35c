"""The reference of the site: signatures from the sources and stubs, text from the docstrings. Writes no file.

A module in Python is read, not imported. What is compiled has its signatures in the stub beside it, and its docstrings
in the build.
"""

import ast
import copy
import importlib
import inspect
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent
Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Page:
    """What stands on one page: an introduction, and names as "module:name" or "module:*" for its __all__."""

    title: str
    introduction: str
    names: tuple[str, ...]


PAGES = {
    "loop": Page(
        "The event loop",
        "All of asyncio's `loop` is there; its own documentation says what the methods do. Here is what comes on top.",
        (
            "uringloop.runner:run",
            "uringloop.loop:new_event_loop",
            "uringloop.loop:EventLoop",
            "uringloop.policy:install",
            "uringloop.policy:EventLoopPolicy",
            "uringloop.errors:UringUnavailable",
            "uringloop.errors:UringUnavailableWarning",
        ),
    ),
    "files": Page(
        "Files",
        "What can be done without waiting is done at once; [Files](../files.md) says which operation runs where. "
        "The functions of `uringloop.fs` take what their namesakes in `os`, `shutil` and `pathlib` take, and raise "
        "what those raise.",
        (
            "uringloop.files.opening:open_file",
            "uringloop.files.opening:Opening",
            "uringloop.files.byte_file:ByteFile",
            "uringloop.files.text_file:TextFile",
            "uringloop.files.fixed_buffers:FixedBuffers",
            "uringloop.files.fixed_buffers:BuffersClosed",
            "uringloop.files.fs:*",
        ),
    ),
    "scheduler": Page(
        "Many loops",
        "[Many loops](../many_loops.md) is the introduction.",
        (
            "uringloop.scheduler.scheduler:Scheduler",
            "uringloop.scheduler.job:Job",
            "uringloop.scheduler.group:JobGroup",
            "uringloop.scheduler.scheduler:StopReport",
            "uringloop.scheduler.served:Served",
            "uringloop.scheduler.context:Context",
            "uringloop.scheduler.context:current_context",
            "uringloop.errors:SchedulerFull",
            "uringloop.errors:ContextDied",
            "uringloop.errors:JobExited",
        ),
    ),
    "sync": Page(
        "Primitives",
        "Of asyncio's interfaces, for tasks of any loops at the same time. [Many loops](../many_loops.md) says what "
        "holds for all of them.",
        (
            "uringloop.sync.lock:Lock",
            "uringloop.sync.event:Event",
            "uringloop.sync.event:AutoResetEvent",
            "uringloop.sync.semaphore:Semaphore",
            "uringloop.sync.semaphore:BoundedSemaphore",
            "uringloop.sync.condition:Condition",
            "uringloop.sync.barrier:Barrier",
            "uringloop.sync.queue:Queue",
            "uringloop.sync.queue:LifoQueue",
            "uringloop.sync.queue:PriorityQueue",
            "uringloop.sync.guarded:Guarded",
            "uringloop.errors:QueueShutDown",
            "uringloop.errors:NotInitialised",
        ),
    ),
    "ops": Page(
        "Any operation",
        "Of the extra `liburing`: `pip install 'uringloop-asyncio[liburing]'`. "
        "[Files](../files.md#any-operation) has examples.",
        (
            "uringloop.ops:submit",
            "uringloop.ops:chain",
            "uringloop.ops:multishot",
            "uringloop.ops:attach",
            "uringloop.ops:Chain",
            "uringloop.ops:Completion",
        ),
    ),
    "inspect": Page(
        "Looking at a loop",
        "[Diagnostics](../diagnostics.md) says when. `loop.statistics()` and `loop.operations()` return the first two.",
        (
            "uringloop.inspect.statistics:Statistics",
            "uringloop.inspect.operations:Operation",
            "uringloop.inspect.prometheus:prometheus_text",
            "uringloop.inspect.snapshots:snapshot",
            "uringloop.inspect.server:serve",
            "uringloop.inspect.server:Inspector",
            "uringloop.inspect.stuck:find_stuck",
            "uringloop.inspect.stuck:StuckFinder",
            "uringloop.inspect.stuck:Stuck",
            "uringloop.inspect.stuck:StuckTask",
            "uringloop.inspect.watchdogs:watchdog",
            "uringloop.inspect.watchdogs:Watchdog",
            "uringloop.inspect.watchdogs:SlowCallback",
            "uringloop.inspect.tracing:trace",
            "uringloop.inspect.opentelemetry:instrument",
            "uringloop.inspect.opentelemetry:Instrumentation",
            "uringloop.errors:InspectionFailed",
            "uringloop.errors:InspectorWarning",
        ),
    ),
}


@cache
def source_of(module: str) -> tuple[ast.Module, list[str], bool]:
    """The tree of a module or of its stub, its lines, and whether it is compiled."""
    path = PROJECT / (module.replace(".", "/") + ".py")
    if not path.exists():
        path = path.parent / path.stem / "__init__.py"
    compiled = not path.exists()
    if compiled:
        path = PROJECT / (module.replace(".", "/") + ".pyi")
    text = path.read_text()
    return ast.parse(text), text.splitlines(), compiled


def docstring(module: str, node: ast.ClassDef | Function, *owner: str) -> str:
    if not source_of(module)[2]:
        return ast.get_docstring(node) or ""
    found: object = importlib.import_module(module)
    for name in (*owner, node.name):
        found = getattr(found, name)
    return inspect.getdoc(found) or ""


def signature(node: Function, owner: str = "") -> str:
    """As it is called: without self, one argument a line where it is long."""
    arguments = copy.deepcopy(node.args)  # the tree is asked again, of another class
    if owner and not any(isinstance(d, ast.Name) and d.id == "staticmethod" for d in node.decorator_list):
        first = (arguments.posonlyargs or arguments.args)[:1]
        arguments.args = [a for a in arguments.args if a not in first]
        arguments.posonlyargs = [a for a in arguments.posonlyargs if a not in first]
    start = "async def " if isinstance(node, ast.AsyncFunctionDef) else "def "
    name = owner if node.name == "__init__" else node.name
    start = f"class {name}" if node.name == "__init__" else f"{start}{name}"
    end = "" if node.returns is None or node.name == "__init__" else f" -> {ast.unparse(node.returns)}"
    line = f"{start}({', '.join(split(arguments))}){end}"
    if len(line) <= 96:
        return line
    return f"{start}(\n" + "".join(f"    {each},\n" for each in split(arguments)) + f"){end}"


def split(arguments: ast.arguments) -> Iterator[str]:
    """Each argument by itself, with its default, and the marks between them."""
    plain = [*arguments.posonlyargs, *arguments.args]
    defaults = [None] * (len(plain) - len(arguments.defaults)) + list(arguments.defaults)
    for number, (argument, default) in enumerate(zip(plain, defaults, strict=True), 1):
        yield ast.unparse(argument) + ("" if default is None else f" = {ast.unparse(default)}")
        if number == len(arguments.posonlyargs):
            yield "/"
    if arguments.vararg is not None:
        yield f"*{ast.unparse(arguments.vararg)}"
    elif arguments.kwonlyargs:
        yield "*"
    for argument, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        yield ast.unparse(argument) + ("" if default is None else f" = {ast.unparse(default)}")
    if arguments.kwarg is not None:
        yield f"**{ast.unparse(arguments.kwarg)}"


def code(text: str) -> str:
    return f"```python\n{text}\n```\n"


def bases(module: str, node: ast.ClassDef) -> Iterator[tuple[str, ast.ClassDef]]:
    """The class and those it is derived from, as far as their methods are public: not the core's."""
    yield module, node
    imports = {
        alias.asname or alias.name: each.module
        for each in source_of(module)[0].body
        if isinstance(each, ast.ImportFrom) and each.module
        for alias in each.names
    }
    for base in node.bases:
        name = base.value if isinstance(base, ast.Subscript) else base
        if not isinstance(name, ast.Name):
            continue
        home = imports.get(name.id, module)
        if home.startswith("uringloop.") and not home.startswith("uringloop._core"):
            found = definition(home, name.id)
            if isinstance(found, ast.ClassDef):
                yield from bases(home, found)


def definition(module: str, name: str) -> ast.AST | None:
    """Also where an if decides between two, as for what a newer Python has itself."""
    for node in ast.walk(source_of(module)[0]):
        if not isinstance(node, ast.ClassDef | Function) or node.name != name:
            continue
        if "overload" not in map(ast.unparse, node.decorator_list):
            return node
    return None


def of_class(module: str, node: ast.ClassDef) -> Iterator[str]:
    methods: dict[str, str] = {}
    head = f"class {node.name}"
    for home, each in bases(module, node):
        for member in each.body:
            if not isinstance(member, Function) or member.name in methods:
                continue
            if member.name == "__init__" and each is node:
                head = signature(member, node.name)
            never = member.returns is not None and ast.unparse(member.returns) == "NoReturn"
            if not member.name.startswith("_") and home != "uringloop.files.call" and not never:
                methods[member.name] = of_method(home, each.name, member, node.name)
    yield code(head) + docstring(module, node) + "\n"
    yield from fields(module, node)
    if module != "uringloop.loop":
        yield from methods.values()
        return
    for name in ("statistics", "operations"):  # what asyncio's loops do not have
        yield methods[name]


def of_method(module: str, owner: str, node: Function, shown: str) -> str:
    """Shown as a method of the class it was asked of, wherever it is inherited from."""
    is_property = any(isinstance(d, ast.Name) and d.id == "property" for d in node.decorator_list)
    said = docstring(module, node, owner)
    if is_property:
        kind = "" if node.returns is None else f": {ast.unparse(node.returns)}"
        return f"#### `{shown}.{node.name}{kind}`\n\n{said}\n"
    return f"#### `{shown}.{node.name}`\n\n{code(signature(node, owner))}{said}\n"


def fields(module: str, node: ast.ClassDef) -> Iterator[str]:
    """Of a dataclass or named tuple, with the comments behind them."""
    lines = source_of(module)[1]
    rows = []
    for member in node.body:
        if isinstance(member, ast.AnnAssign) and not ast.unparse(member.target).startswith("_"):
            comment = lines[member.lineno - 1].partition("  # ")[2]
            rows.append(
                f"| `{ast.unparse(member.target)}` | `{ast.unparse(member.annotation)}` | {comment} |"
            )
    if rows:
        yield "\n".join(["| field | type | |", "|---|---|---|", *rows]) + "\n"


def public(module: str) -> list[str]:
    """The `__all__` of a module; none if it has none."""
    for node in source_of(module)[0].body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            names: list[str] = ast.literal_eval(node.value)
            return names
    return []


def import_path(module: str, name: str) -> str:
    """Where a program imports the name from: the shortest of the packages around the module that lists it as public.
    A module of its own, which no package lists, is that itself; "" for what programs get and don't import."""
    parts = module.split(".")
    for count in range(1, len(parts)):
        if name in public(".".join(parts[:count])):
            return ".".join(parts[:count])
    return module if name in public(module) else ""


def entries(name: str) -> Iterator[str]:
    module, _, wanted = name.partition(":")
    names = [wanted]
    if wanted == "*":
        names = public(module)
    imported = {
        alias.name: each.module
        for each in source_of(module)[0].body
        if isinstance(each, ast.ImportFrom) and each.module
        for alias in each.names
    }
    also = {
        ast.unparse(node.targets[0]): node.value.id
        for node in source_of(module)[0].body
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Name)
    }
    for each in names:
        prefix = "fs." if module == "uringloop.files.fs" else "ops." if module == "uringloop.ops" else ""
        yield f"### `{prefix}{each}`\n"
        if not prefix and (path := import_path(module, each)):
            yield f"`from {path} import {each}`\n"
        if each in also:
            yield f"Another name of `{prefix}{also[each]}`.\n"
            continue
        home = module if definition(module, each) is not None else imported[each]
        node = definition(home, each)
        if isinstance(node, ast.ClassDef):
            yield from of_class(home, node)
        elif isinstance(node, Function):
            yield code(signature(node)) + docstring(home, node) + "\n"


def page(name: str) -> str:
    """The Markdown of a page."""
    about = PAGES[name]
    parts = [f"# {about.title}\n", about.introduction + "\n"]
    for each in about.names:
        parts += entries(each)
    return "\n".join(parts)


def commands() -> str:
    """The command line's own help."""
    from uringloop.__main__ import COMMANDS, _parser

    parts = [
        "# Command line\n",
        "`uringloop`, or `python -m uringloop`. `bench` needs the project's source folder.\n",
        f"```text\n{_parser().format_help()}```\n",
    ]
    choices = next(a for a in _parser()._actions if a.dest == "command").choices
    for name in COMMANDS:
        parts.append(f"## {name}\n\n```text\n{dict(choices)[name].format_help()}```\n")  # type: ignore[arg-type]
    return "\n".join(parts)
