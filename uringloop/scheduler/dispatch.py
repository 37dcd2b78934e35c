"""Dispatch: which context a job goes to. A policy is a function of the living contexts and the job's key. It
owns nothing but its own memory of where it was, and may be called by many threads at once."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Hashable, Sequence

from uringloop.scheduler.context import Context, current_context

Dispatch = Callable[[Sequence[Context], Hashable], Context]


def round_robin() -> Dispatch:
    """One after the other."""
    turns = itertools.count()

    def choose(contexts: Sequence[Context], key: Hashable) -> Context:
        return contexts[next(turns) % len(contexts)]

    return choose


def least_loaded() -> Dispatch:
    """Where the fewest jobs wait or run. With equal loads, one after the other."""
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
    """Where the key's hash says: what has the same key shares a thread, and starts in order. Without one, one after
    the other."""
    keyless = round_robin()

    def choose(contexts: Sequence[Context], key: Hashable) -> Context:
        return keyless(contexts, key) if key is None else contexts[hash(key) % len(contexts)]

    return choose


def local() -> Dispatch:
    """On the submitter's own context; from elsewhere, one after the other."""
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
