"""Positions in text files: the number that tell() returns and seek() takes, with io's own layout.

It holds the byte position where decoding can begin, the decoder's flags there, how many bytes to feed to the decoder,
and how many of the decoded characters to skip. With most encodings, decoding can begin at any character: the number is
then the byte position.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import Any, NamedTuple


class Cookie(NamedTuple):
    position: int
    flags: int = 0
    feed: int = 0
    skip: int = 0
    end: bool = False  # the decoder must be told that its input ends here


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
    """The position `characters` after `start`. At `start`, the decoder had `flags`, and was then fed `fed`."""
    if not characters:
        return Cookie(start, flags)
    saved = decoder.getstate()
    try:
        return _search(decoder, start, flags, fed, characters)
    finally:
        decoder.setstate(saved)


def _search(decoder: Any, start: int, flags: int, fed: bytes, characters: int) -> Cookie:
    # Find the last position, at or before the wanted one, where decoding can begin: guess it from the average size of a
    # character, and go back in doubling steps while the guess is too far.
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
    """The same from `start` on. Feeding byte by byte would be simpler, but a decoder that has to buffer much input, as
    UTF-7's does, decodes its whole buffer again with each byte."""

    def decoded(size: int) -> int:
        decoder.setstate((b"", flags))
        return len(decoder.decode(fed[:size]))

    at_the_end = decoded(len(fed)) < characters  # the decoder yields the rest only at the end of its input
    size = len(fed) if at_the_end else bisect_left(range(len(fed)), characters, key=decoded)
    position = size
    while position:
        passed = decoded(position)
        pending, position_flags = decoder.getstate()
        if not pending and passed <= characters:
            return Cookie(start + position, position_flags, size - position, characters - passed, at_the_end)
        position -= len(pending) or 1
    return Cookie(start, flags, size, characters, at_the_end)
