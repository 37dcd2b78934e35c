"""Text files: io's own are the model."""

from __future__ import annotations

import codecs
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import uringloop
from tests.files.model import compare
from uringloop.files.cookie import where

ALPHABET = st.sampled_from("ab \n\r\té€\U0001f600")
texts = st.one_of(
    st.text(ALPHABET, max_size=60),
    st.builds(
        lambda unit, n: unit * n, st.text(ALPHABET, max_size=5), st.sampled_from([1, 100, 8191, 8192, 9000])
    ),
)
reading = st.one_of(
    st.tuples(
        st.just("read"), st.one_of(st.just(-1), st.integers(0, 40), st.sampled_from([8191, 8192, 9000]))
    ),
    st.tuples(st.just("readline"), st.one_of(st.just(-1), st.integers(1, 30))),
    st.tuples(st.just("readlines"), st.sampled_from([-1, 1, 100])),
    st.tuples(st.just("seek"), st.just(0), st.just(0)),
)
writing = st.one_of(
    st.tuples(st.just("write"), texts),
    st.tuples(st.just("writelines"), st.lists(texts, max_size=3)),
    st.tuples(st.just("flush")),
    st.tuples(st.just("seek"), st.just(0), st.sampled_from([0, 2])),
)
quick = settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
ENCODINGS = ["utf-8", "utf-16", "utf-8-sig", "latin-1", "utf-7", "cp037"]


@pytest.mark.parametrize("newline", [None, "", "\n", "\r", "\r\n"])
@pytest.mark.parametrize("encoding", ENCODINGS)
def test_reads_have_the_results_of_io(loop: Any, encoding: str, newline: str | None) -> None:
    @quick
    @given(content=texts, todo=st.lists(reading, max_size=8))
    def check(content: str, todo: list[Any]) -> None:
        raw = content.encode(encoding, "replace")
        with tempfile.TemporaryDirectory() as folder:
            loop.run_until_complete(compare(Path(folder), raw, "r", todo, encoding=encoding, newline=newline))

    check()


@pytest.mark.parametrize("newline", [None, "", "\n", "\r", "\r\n"])
@pytest.mark.parametrize(
    ("encoding", "mode"), [("utf-8", "w"), ("utf-16", "a"), ("utf-8-sig", "w+"), ("latin-1", "x")]
)
def test_writes_have_the_results_of_io(loop: Any, encoding: str, mode: str, newline: str | None) -> None:
    @quick
    @given(content=texts, todo=st.lists(writing, max_size=8), line_buffering=st.booleans())
    def check(content: str, todo: list[Any], line_buffering: bool) -> None:
        with tempfile.TemporaryDirectory() as folder:
            loop.run_until_complete(
                compare(
                    Path(folder),
                    content.encode(encoding, "replace"),
                    mode,
                    todo,
                    encoding=encoding,
                    newline=newline,
                    buffering=1 if line_buffering else -1,
                )
            )

    check()


@pytest.mark.parametrize("newline", [None, "", "\r\n"])
@pytest.mark.parametrize("encoding", ENCODINGS)
def test_reading_continues_at_the_position_that_tell_returned(
    loop: Any, tmp_path: Path, encoding: str, newline: str | None
) -> None:
    @quick
    @given(content=texts, steps=st.lists(st.integers(0, 20), max_size=5))
    def check(content: str, steps: list[int]) -> None:
        path = tmp_path / "text"
        path.write_bytes(content.encode(encoding, "replace"))

        async def main() -> None:
            async with uringloop.open_file(path, encoding=encoding, newline=newline) as file:
                for step in steps:
                    await file.read(step) if step % 2 else await file.readline()
                    place = await file.tell()
                    rest = await file.read()
                    await file.seek(place)
                    assert await file.tell() == place
                    assert await file.read() == rest
                    await file.seek(place)

        loop.run_until_complete(main())

    check()


def test_tell_decodes_a_long_run_a_few_times_only() -> None:
    """UTF-7 writes what is not ASCII as one run, in which decoding can not begin."""
    decoded = 0
    decoder = codecs.getincrementaldecoder("utf-7")()

    class Counting:
        getstate, setstate = decoder.getstate, decoder.setstate

        def decode(self, data: bytes, final: bool = False) -> str:
            nonlocal decoded
            decoded += len(decoder.getstate()[0]) + len(data)
            return decoder.decode(data, final)

    fed = ("\u0100" * 20_000 + "-end").encode("utf-7")
    cookie = where(Counting(), 0, 0, fed, 20_002)
    assert cookie.position + cookie.feed == fed.index(b"end") + 1
    assert decoded < 50 * len(fed)


def test_a_truncated_end_is_read_to_its_last_byte(loop: Any, tmp_path: Path) -> None:
    """A codec may keep some of it even when it is told that this is all."""
    (tmp_path / "f").write_bytes(b"\n\x949\xfc")

    async def main() -> None:
        with open(tmp_path / "f", encoding="gb18030", errors="surrogateescape") as theirs:
            async with uringloop.open_file(
                tmp_path / "f", encoding="gb18030", errors="surrogateescape"
            ) as ours:
                for _ in range(4):
                    assert await ours.read(2) == theirs.read(2)

    loop.run_until_complete(main())
