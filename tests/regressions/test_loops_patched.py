"""Libraries that patch asyncio's own loop: what they do is written out here, so that none has to be installed."""

from __future__ import annotations

import asyncio
import os
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import uringloop


def _patch_loop(loop: Any) -> None:
    """nest_asyncio's: from then on, its loops run by what only asyncio's own have."""

    def _run_once(self: Any) -> None:
        self._process_events(self._selector.select(0))

    def run_until_complete(self: Any, future: Any) -> Any:
        future = asyncio.ensure_future(future, loop=self)
        while not future.done():
            self._run_once()
        return future.result()

    if hasattr(loop, "_nest_patched"):
        return
    loop.__class__._run_once = _run_once
    loop.__class__.run_until_complete = run_until_complete
    loop.__class__._nest_patched = True


def apply(loop: Any) -> None:
    _patch_loop(loop)


def get_event_loop(made: Any) -> Any:
    """The policy's, as nest_asyncio has patched it."""
    _patch_loop(made)
    return made


@pytest.fixture
def untouched() -> Iterator[None]:
    """The class is as before after the test, for the other tests' sake."""
    before = dict(uringloop.EventLoop.__dict__)
    yield
    for name in set(uringloop.EventLoop.__dict__) - set(before):
        delattr(uringloop.EventLoop, name)
    for name, value in before.items():
        if uringloop.EventLoop.__dict__[name] is not value:
            setattr(uringloop.EventLoop, name, value)


async def some_turns() -> int:
    await asyncio.sleep(0)
    await asyncio.sleep(0.001)
    return 7


def test_nest_asyncio_is_refused_and_all_loops_go_on(new_loop: Callable[..., Any], untouched: None) -> None:
    before = new_loop()
    with pytest.raises(ValueError, match=r"Can't patch loop of type.*another thread"):
        apply(before)
    assert before.run_until_complete(some_turns()) == new_loop().run_until_complete(some_turns()) == 7


def test_a_loop_still_works_after_nest_asyncio_failed_to_patch_it(
    new_loop: Callable[..., Any], untouched: None
) -> None:
    with pytest.raises(ValueError, match="Can't patch"):
        apply(new_loop())
    assert get_event_loop(new_loop()).run_until_complete(some_turns()) == 7


def test_no_loop_claims_to_be_patched_to_other_libraries(loop: Any) -> None:
    assert not hasattr(loop, "_nest_patched")


class Compacted(asyncio.BaseEventLoop):
    """As looptime's: a mixin that is put before the loop's class, whether a test asks for it or not."""

    def set_up(self) -> None:
        self.enabled = False
        self.select = self._selector.select  # type: ignore[attr-defined]
        self._selector.select = self.replaced  # type: ignore[attr-defined]

    def replaced(self, timeout: float | None) -> Any:
        return self.select(timeout)

    def time(self) -> float:
        return 0.0 if self.enabled else super().time()


@pytest.fixture
def compacted(loop: Any, engine: str) -> Any:
    loop.__class__ = type("CompactedLoop", (Compacted, type(loop)), {})
    loop.set_up()
    return loop


@pytest.mark.contract
def test_looptime_that_is_installed_but_disabled_changes_nothing(compacted: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert compacted.run_until_complete(some_turns()) == 7


def test_a_replaced_clock_emits_one_runtime_warning(compacted: Any) -> None:
    compacted.enabled = True
    with pytest.warns(RuntimeWarning, match=r"CompactedLoop\.time\(\) was replaced") as found:
        compacted.run_until_complete(some_turns())
    compacted.run_until_complete(some_turns())
    assert len(found) == 1


def test_a_clock_set_on_the_loop_object_emits_a_runtime_warning(loop: Any) -> None:
    loop.time = lambda: 0.0
    with pytest.warns(RuntimeWarning, match=r"time\(\) was replaced"):
        loop.run_until_complete(some_turns())


@pytest.mark.contract
def test_repr_of_a_pipe_shows_whether_it_is_polled(loop: Any) -> None:
    async def main() -> None:
        reading, writing = os.pipe()
        transport, _ = await loop.connect_read_pipe(asyncio.Protocol, os.fdopen(reading, "rb", 0))
        await asyncio.sleep(0)
        assert "polling" in repr(transport)
        transport.pause_reading()
        assert "idle" in repr(transport)
        transport.close()
        os.close(writing)
        await asyncio.sleep(0)
        assert "closed" in repr(transport)

    loop.run_until_complete(main())


def test_using_the_missing_selector_raises_a_clear_error(loop: Any) -> None:
    with pytest.raises(RuntimeError, match="no selector"):
        loop._selector.select(0)
    with pytest.raises(AttributeError, match="no selector"):
        loop._selector.get_map()
