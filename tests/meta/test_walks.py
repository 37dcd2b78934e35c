"""The walks of docs/design.md are true: each step's function exists, and leads to the next as the page says."""

import re
from pathlib import Path
from typing import NamedTuple

import pytest

PROJECT = Path(__file__).resolve().parents[2]
PACKAGE = PROJECT / "uringloop"
PAGE = (PROJECT / "docs" / "design.md").read_text()

STEP = re.compile(r"(\d+)\. `([\w/]+\.pyx?)` `([\w.]+)`: (.+)")
MARK = re.compile(r"\((?=back to step|through|returns to)([^()]*)\)\.$")


class Step(NamedTuple):
    file: str
    function: str  # with its class
    sentence: str
    back: int  # the step that leads to the next one, where it is not this one
    queue: str  # what both of them name, where neither calls the other
    returns: bool  # the next step is the caller

    @property
    def name(self) -> str:
        return self.function.rpartition(".")[2]


def section(page: str) -> str:
    return page.partition("\n## Five walks\n")[2].partition("\n## ")[0]


def walks_of(page: str) -> dict[str, list[Step]]:
    walks: dict[str, list[Step]] = {}
    for part in section(page).split("\n### ")[1:]:
        title, _, text = part.partition("\n")
        walks[title] = []
        for item in re.split(r"\n(?=\d)", text.strip()):
            match = STEP.fullmatch(" ".join(item.split()))
            assert match, f"no step: {item!r}"
            walks[title].append(step(*match.groups()))
            assert int(match[1]) == len(walks[title]), f"steps are numbered in order: {item!r}"
    return walks


def step(number: str, file: str, function: str, sentence: str) -> Step:
    mark = MARK.search(sentence)
    words = mark[1] if mark else ""
    back = re.match(r"back to step (\d+)(?:; |$)", words)
    queue = re.search(r"through [^`]+, `(\w+)`$", words)
    returns = words == "returns to its caller"
    assert not mark or back or queue or returns, f"what is ({words})?"
    return Step(
        file, function, sentence, int(back[1] if back else number), queue[1] if queue else "", returns
    )


def body(package: Path, file: str, function: str) -> str:
    """The code of the function: without its signature, its docstring, and its comments."""
    places = [path for path in (package / file, package / "_core" / file) if path.is_file()]
    assert len(places) == 1, f"{file}: there are {len(places)} such files"
    lines = places[0].read_text().splitlines()
    owner, _, name = function.rpartition(".")
    if owner:
        lines = block(lines, rf"(?:cdef )?class {owner}\b", f"{file}: no class {owner}")
    code = block(
        lines,
        rf"{' ' * 4 * bool(owner)}(?:async def|def|cpdef|cdef)\b[^=(#]*\b{name}\(",
        f"{file}: no {function}",
    )
    text = "\n".join(re.sub(r"#.*", "", line) for line in code)
    return re.sub(r'\A\s*""".*?"""', "", text, flags=re.DOTALL)


def block(lines: list[str], header: str, missing: str) -> list[str]:
    """What stands below the one line that begins so, and is indented deeper."""
    starts = [number for number, line in enumerate(lines) if re.match(header, line)]
    assert len(starts) == 1, f"{missing}, or more than one"
    first = lines[starts[0]]
    depth = len(first) - len(first.lstrip())
    end, brackets = starts[0], 0
    while True:  # a signature may have several lines
        brackets += lines[end].count("(") - lines[end].count(")")
        end += 1
        if brackets <= 0:
            break
    begin = end
    while end < len(lines) and (
        not lines[end].strip()
        or lines[end].lstrip().startswith("#")
        or len(lines[end]) - len(lines[end].lstrip()) > depth
    ):
        end += 1
    return lines[begin:end]


def names(text: str, name: str) -> bool:
    return re.search(rf"\b{name}\b", text) is not None


def calls(text: str, name: str) -> bool:
    """Calls it, or hands it to what will."""
    return re.search(rf"\b{name}\b\s*[(,)]", text) is not None


def faults(walk: list[Step], package: Path = PACKAGE) -> list[str]:
    """What is not true of it."""
    found = []
    texts: list[str] = []
    for one in walk:
        try:
            texts.append(body(package, one.file, one.function))
        except AssertionError as error:
            return [str(error).partition("\n")[0]]
    for number, (one, text) in enumerate(zip(walk, texts, strict=True), 1):
        for told in re.findall(r"`(\w+)`", MARK.sub("", one.sentence)):
            if not names(text, told):
                found.append(f"step {number}: {one.function} does not name {told}")
        if number == len(walk):
            if one.back != number or one.queue or one.returns:
                found.append(f"step {number}: nothing follows")
            continue
        if one.back > number:
            found.append(f"step {number}: {one.back} is no earlier step")
            continue
        before, after = walk[one.back - 1], walk[number]
        giver, taker = texts[one.back - 1], texts[number]
        if one.queue:
            found += [
                f"step {number}: {end.function} does not name {one.queue}"
                for end, end_text in ((before, giver), (after, taker))
                if not names(end_text, one.queue)
            ]
        elif one.returns:
            if not calls(taker, one.name):
                found.append(f"step {number}: {after.function} does not call {one.name}")
        elif not calls(giver, after.name):
            found.append(f"step {number}: {before.function} does not call {after.name}")
    return found


WALKS = walks_of(PAGE)


def test_there_are_five_walks() -> None:
    assert len(WALKS) == 5


@pytest.mark.parametrize("title", WALKS)
def test_each_step_of_a_walk_leads_to_the_next(title: str) -> None:
    assert faults(WALKS[title]) == []


@pytest.mark.parametrize("title", WALKS)
def test_walks_are_short(title: str) -> None:
    assert 5 <= len(WALKS[title]) <= 9


# The checker itself

CODE = '''
cdef class Pump(Machine):
    cdef int start(self, int a,
                   int b) except -1:
        """Calls stop(), says the docstring."""
        self.store.append(a)  # and stop() too
        return self.run(b)

    cdef bint run(self, int b) noexcept

    def stop(self):
        take(self.store)


cdef void take(list store) noexcept:
    store.pop()
'''

GOOD = """
## Five walks

### One

1. `room/pump.pyx` `Pump.start`: the pump puts it into its `store` (through the
   store, `store`).
2. `room/pump.pyx` `Pump.stop`: the pump empties the store.
3. `room/pump.pyx` `take`: the function takes one out (`pop`).

### Two

1. `room/pump.pyx` `take`: the function takes one out (returns to its caller).
2. `room/pump.pyx` `Pump.stop`: the pump gives it back (back to step 1; through the store, `store`).
3. `room/pump.pyx` `Pump.start`: the pump starts.

## Rules
"""


@pytest.fixture
def package(tmp_path: Path) -> Path:
    (tmp_path / "_core" / "room").mkdir(parents=True)
    (tmp_path / "_core" / "room" / "pump.pyx").write_text(CODE)
    return tmp_path


def all_faults(page: str, package: Path) -> list[str]:
    return [fault for walk in walks_of(page).values() for fault in faults(walk, package)]


def test_a_correct_walk_has_no_faults(package: Path) -> None:
    assert all_faults(GOOD, package) == []


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        ("room/pump.pyx` `Pump.start", "room/pipe.pyx` `Pump.start", "room/pipe.pyx: there are 0 such files"),
        ("`Pump.stop`", "`Pump.halt`", "room/pump.pyx: no Pump.halt, or more than one"),
        ("`Pump.stop`", "`Pipe.stop`", "room/pump.pyx: no class Pipe, or more than one"),
        ("`take`", "`Pump.take`", "room/pump.pyx: no Pump.take, or more than one"),
        # Only its comment and its docstring name it.
        (" (through the\n   store, `store`)", "", "step 1: Pump.start does not call stop"),
        (
            "`take`: the function takes one out (`pop`)",
            "`Pump.start`: it starts",
            "step 2: Pump.stop does not call start",
        ),
        ("store, `store`)", "store, `shelf`)", "step 1: Pump.start does not name shelf"),
        ("store, `store`)", "store, `append`)", "step 1: Pump.stop does not name append"),
        ("(`pop`)", "(`push`)", "step 3: take does not name push"),
        ("(`pop`)", "(through the store, `store`)", "step 3: nothing follows"),
        (
            "`Pump.stop`: the pump gives",
            "`Pump.start`: the pump gives",
            "step 1: Pump.start does not call take",
        ),
        ("back to step 1", "back to step 3", "step 2: 3 is no earlier step"),
    ],
)
def test_a_fault_in_a_walk_is_found(old: str, new: str, fault: str, package: Path) -> None:
    assert GOOD.count(old) >= 1
    assert fault in all_faults(GOOD.replace(old, new), package)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("2. `room/pump.pyx` `Pump.stop`", "3. `room/pump.pyx` `Pump.stop`"),
        ("`Pump.stop`: the", "Pump.stop: the"),
        ("(through the\n   store, `store`)", "(through the store)"),
    ],
)
def test_a_step_that_cannot_be_read_is_refused(old: str, new: str) -> None:
    assert old in GOOD
    with pytest.raises(AssertionError):
        walks_of(GOOD.replace(old, new))
