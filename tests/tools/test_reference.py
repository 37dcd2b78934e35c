"""The reference says something of every public name, and says it as the sources do."""

import pytest

import uringloop
from tools import reference

PAGES = {name: reference.page(name) for name in reference.PAGES}


def headings() -> set[str]:
    lines = "\n".join(PAGES.values()).splitlines()
    return {line.removeprefix("### ").strip("`") for line in lines if line.startswith("### ")}


def test_every_public_name_is_there() -> None:
    modules = {"fs", "__version__"}  # fs: by its functions
    assert set(uringloop.__all__) - modules <= headings()
    assert {f"fs.{name}" for name in uringloop.fs.__all__} <= headings()


@pytest.mark.parametrize(
    ("page", "text"),
    [
        ("sync", "### `QueueShutDown`\n\n`from uringloop import QueueShutDown`\n"),
        ("scheduler", "### `StopReport`\n\n`from uringloop.scheduler import StopReport`\n"),
        ("files", "### `BuffersClosed`\n\n`from uringloop import BuffersClosed`\n"),
        ("files", "### `Opening`\n\n```python\n"),  # no program imports it
        ("inspect", "### `instrument`\n\n`from uringloop.inspect.opentelemetry import instrument`\n"),
        ("sync", "def acquire_sync(timeout: float | None = None) -> bool"),  # of a stub
        ("sync", "Acquire in a plain thread: True once acquired"),  # of what is compiled
        ("scheduler", "    dispatch: str | Dispatch = 'round_robin',\n"),  # one a line where it is long
        ("scheduler", "1. Refuse: submit raises"),
        ("inspect", "| `sleeps` | `int` | times the thread waited in the kernel |"),  # of a comment
        ("files", "Another name of `fs.unlink`."),
        ("ops", "async def submit("),  # without importing it: it needs an extra
    ],
)
def test_signatures_and_text(page: str, text: str) -> None:
    assert text in PAGES[page]


def test_inherited_methods_have_the_same_text_in_each_class() -> None:
    assert PAGES["sync"].count("def acquire_sync(timeout: float | None = None) -> bool") == 4


def test_the_command_line_shows_every_command() -> None:
    from uringloop.__main__ import COMMANDS

    text = reference.commands()
    assert all(f"\n## {name}\n" in text for name in COMMANDS)
