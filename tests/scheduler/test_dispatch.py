"""Dispatch: where each policy sends jobs."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

import pytest

import uringloop
from tests.scheduler.dying import kill
from uringloop.scheduler import Scheduler, current_context


async def where() -> str:
    context = current_context()
    assert context is not None
    return context.name


def names(jobs: list[Any]) -> Counter[str]:
    return Counter(job.result(10) for job in jobs)


def test_round_robin_goes_round(engine: str) -> None:
    with Scheduler(3, stealing=False) as scheduler:
        assert set(names(scheduler.submit_many(where() for _ in range(30))).values()) == {10}


def test_least_loaded_avoids_the_busy(engine: str) -> None:
    with Scheduler(3, dispatch="least_loaded", stealing=False) as scheduler:
        goes_on = uringloop.Event()
        busy = [scheduler.submit(goes_on.wait(), context=scheduler.contexts[0]) for _ in range(50)]
        found = names(scheduler.submit_many(where() for _ in range(40)))
        goes_on.set()
        assert scheduler.contexts[0].name not in found
        assert len(found) == 2
        assert all(job.result(10) for job in busy)


@pytest.mark.parametrize("dispatch", ["round_robin", "least_loaded", "hash", "local"])
def test_key_chooses_the_context_under_any_policy(engine: str, dispatch: str) -> None:
    with Scheduler(3, dispatch=dispatch) as scheduler:
        for key in range(5):
            assert len(names([scheduler.submit(where(), key=f"user {key}") for _ in range(10)])) == 1


def test_local_keeps_jobs_on_the_submitters_context(engine: str) -> None:
    with Scheduler(3, dispatch="local", stealing=False) as scheduler:

        async def inner() -> set[str]:
            jobs = [scheduler.submit(where()) for _ in range(10)]
            return {await where(), *await asyncio.gather(*jobs)}

        for context in scheduler.contexts:
            assert scheduler.submit(inner(), context=context).result(10) == {context.name}
        assert len(names([scheduler.submit(where()) for _ in range(9)])) == 3


def test_callable_decides(engine: str) -> None:
    with Scheduler(3, dispatch=lambda contexts, key: contexts[-1], stealing=False) as scheduler:
        assert set(names(scheduler.submit_many(where() for _ in range(9)))) == {scheduler.contexts[2].name}


def test_unknown_policy_is_refused(engine: str) -> None:
    with pytest.raises(ValueError, match="dispatch must be"):
        Scheduler(2, dispatch="magic")


def test_callable_is_given_the_key_and_decides_for_it_too(engine: str) -> None:
    seen = []

    def choose(contexts: Any, key: Any) -> Any:
        seen.append(key)
        return contexts[0 if key is None else key]

    with Scheduler(3, dispatch=choose) as scheduler:
        for key in (2, 0, 1):
            assert scheduler.submit(where(), key=key).result(10) == scheduler.contexts[key].name
        jobs = scheduler.submit_many((where() for _ in range(20)), key=2)
        assert set(names(jobs)) == {scheduler.contexts[2].name}, "what a key chose is not taken over"
        scheduler.submit(where()).result(10)
    assert seen == [2, 0, 1, *[2] * 20, None]


def test_callable_that_returns_no_living_context_is_an_error(engine: str) -> None:
    kept: list[Any] = [None]
    with Scheduler(2, dispatch=lambda contexts, key: kept[0]) as scheduler:
        for work in (lambda: scheduler.submit(where()), lambda: scheduler.submit_many([where(), where()])):
            with pytest.raises(RuntimeError, match="dispatch returned None"):
                work()
        kept[0] = scheduler.contexts[0]
        kill(scheduler, kept[0])
        with pytest.raises(RuntimeError, match="which is none of"):
            scheduler.submit(where())
        assert scheduler.join(10)


def test_hash_without_a_key_goes_round(engine: str) -> None:
    with Scheduler(3, dispatch="hash", stealing=False) as scheduler:
        assert set(names(scheduler.submit_many(where() for _ in range(30))).values()) == {10}
