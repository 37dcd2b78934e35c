"""The dispatch policies: they choose the context for a job. A policy is a function of the living contexts and the
job's key. Its only state is a counter, and many threads may call it at once."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Hashable, Sequence

from uringloop.scheduler.context import Context, current_context

Dispatch = Callable[[Sequence[Context], Hashable], Context]


def round_robin() -> Dispatch:
    """Choose the contexts in turn."""
    turns = itertools.count()

    def choose(contexts: Sequence[Context], key: Hashable) -> Context:
        return contexts[next(turns) % len(contexts)]

    return choose


def least_loaded() -> Dispatch:
    """Choose the context where the fewest jobs wait or run, and contexts with equal loads in turn."""
    turns = itertools.count()

    def choose(contexts: Sequence[Context], key: Hashable) -> Context:
        first = next(turns) % len(contexts)
        best = contexts[first]
        least = best.load
        if least:
            for other in (*contexts[first + 1 :], *contexts[:first]):
                load = other.load
                if load < least:
                    best, least = other, load
        return best

    return choose


def by_key() -> Dispatch:
    """Choose the context by the key's hash: jobs with the same key run on one thread and start in order. Jobs
    without a key go to the contexts in turn."""
    keyless = round_robin()

    def choose(contexts: Sequence[Context], key: Hashable) -> Context:
        return keyless(contexts, key) if key is None else contexts[hash(key) % len(contexts)]

    return choose


def local() -> Dispatch:
    """Choose the submitter's own context. Jobs from other threads go to the contexts in turn."""
    elsewhere = round_robin()

    def choose(contexts: Sequence[Context], key: Hashable) -> Context:
        here = current_context()
        return here if here is not None and here in contexts else elsewhere(contexts, key)

    return choose


POLICIES: dict[str, Callable[[], Dispatch]] = {
    "round_robin": round_robin,
    "least_loaded": least_loaded,
    "hash": by_key,
    "local": local,
}


def policy(wanted: str | Dispatch) -> Dispatch:
    if callable(wanted):
        return wanted
    if wanted not in POLICIES:
        raise ValueError(f"dispatch must be callable or one of {', '.join(POLICIES)}, not {wanted!r}")
    return POLICIES[wanted]()
