"""Where a text file is: the number that tell() returns and seek() takes, with io's own layout.

It says at which byte decoding can begin, the decoder's flags there, how many bytes to feed it and how many
of the characters that come of it to skip. Most encodings can begin anywhere: there the number is the byte's
position.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import Any, NamedTuple


class Cookie(NamedTuple):
    position: int
    flags: int = 0
    feed: int = 0
    skip: int = 0
    end: bool = False  # the decoder has to be told that this is all


def pack(cookie: Cookie) -> int:
    position, flags, feed, skip, end = cookie
    return position | flags << 64 | feed << 128 | skip << 192 | bool(end) << 256


def unpack(number: int) -> Cookie:
    mask = (1 << 64) - 1
    return Cookie(
        number & mask,
        number >> 64 & mask,
        number >> 128 & mask,
        number >> 192 & mask,
        bool(number >> 256),
    )


def where(decoder: Any, start: int, flags: int, fed: bytes, characters: int) -> Cookie:
    """The place `characters` after `start`, where the decoder had `flags` and was then given `fed`."""
    if not characters:
        return Cookie(start, flags)
    saved = decoder.getstate()
    try:
        return _search(decoder, start, flags, fed, characters)
    finally:
        decoder.setstate(saved)


def _search(decoder: Any, start: int, flags: int, fed: bytes, characters: int) -> Cookie:
    # The furthest place from which decoding can begin, at or before the wanted one: guessed from the average
    # size of a character, and moved back in steps that double until it is not beyond.
    begin, count, begin_flags = 0, 0, flags
    guess, step = len(fed), 1
    while guess > 0:
        decoder.setstate((b"", flags))
        decoded = len(decoder.decode(fed[:guess]))
        pending, guess_flags = decoder.getstate()
        if decoded > characters:
            guess = min(guess - step, guess * characters // decoded)
            step *= 2
        elif pending:
            guess -= len(pending)
        else:
            begin, count, begin_flags = guess, decoded, guess_flags
            break
    decoder.setstate((b"", begin_flags))
    if count == characters:
        return Cookie(start + begin, begin_flags)
    return _search_behind(decoder, start + begin, begin_flags, fed[begin:], characters - count)


def _search_behind(decoder: Any, start: int, flags: int, fed: bytes, characters: int) -> Cookie:
    """The same from `start` on. Byte by byte would be easier to read, but a decoder that keeps much before it can say
    what it is, as UTF-7's does, decodes all it has kept again with each byte."""

    def decoded(size: int) -> int:
        decoder.setstate((b"", flags))
        return len(decoder.decode(fed[:size]))

    at_the_end = decoded(len(fed)) < characters  # and the rest comes once it is told so
    size = len(fed) if at_the_end else bisect_left(range(len(fed)), characters, key=decoded)
    position = size
    while position:
        passed = decoded(position)
        pending, position_flags = decoder.getstate()
        if not pending and passed <= characters:
            return Cookie(start + position, position_flags, size - position, characters - passed, at_the_end)
        position -= len(pending) or 1
    return Cookie(start, flags, size, characters, at_the_end)
