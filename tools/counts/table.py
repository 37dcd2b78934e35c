"""The table of instructions (benchmarks/counts.json), and what is compared with it.

It keeps what each path took at one commit, the first, and with which tools. What a path may take more since then, or
has to take less, stands beside that with its reason. Instructions are of one operation, the interpreter's included.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

LIMIT = 2.0  # percent

Counts = dict[str, dict[str, float]]  # by path, by engine


@dataclass(frozen=True)
class Allowance:
    """So many percent more (or less, if negative) than the table says are what the path is held to from now on."""

    path: str
    engine: str
    percent: float
    why: str


@dataclass
class Table:
    commit: str
    why: str
    tools: dict[str, str]
    instructions: Counts
    allowances: list[Allowance] = field(default_factory=list)

    def allowed(self, path: str, engine: str) -> float:
        """The last word on it."""
        found = [one.percent for one in self.allowances if (one.path, one.engine) == (path, engine)]
        return found[-1] if found else 0.0

    def allow(self, row: Row, why: str) -> None:
        """What was measured is right, for that reason."""
        if not why.strip():
            raise ValueError("the table is changed for a reason, which it says")
        self.instructions.setdefault(row.path, {}).setdefault(row.engine, round(row.base))
        self.allowances.append(Allowance(row.path, row.engine, round(row.percent, 1), why))

    def text(self) -> str:
        """A line for each path, and one for each allowance, so that a change of it can be read."""
        rows = (f"    {json.dumps(path)}: {json.dumps(counts)}" for path, counts in self.instructions.items())
        allowances = (f"    {json.dumps(asdict(one))}" for one in self.allowances)
        parts = [f'  "{name}": {json.dumps(getattr(self, name))}' for name in ("commit", "why", "tools")]
        parts.append('  "instructions": {\n' + ",\n".join(rows) + "\n  }")
        parts.append('  "allowances": [\n' + ",\n".join(allowances) + "\n  ]")
        return "{\n" + ",\n".join(parts) + "\n}\n"


def parse(text: str) -> Table:
    """ValueError says what is wrong with it."""
    fields: dict[str, Any] = json.loads(text)
    try:
        table = Table(**{**fields, "allowances": [Allowance(**one) for one in fields["allowances"]]})
    except (KeyError, TypeError) as error:
        raise ValueError(f"not a table of instructions: {error}") from None
    for one in table.allowances:
        if not one.why.strip():
            raise ValueError(f"an allowance without a reason: {one.path}")
        if one.engine not in table.instructions.get(one.path, {}):
            raise ValueError(f"an allowance for what is not in the table: {one.path} on {one.engine}")
    return table


def read(path: Path) -> Table:
    return parse(path.read_text())


@dataclass(frozen=True)
class Row:
    """One path on one engine: what it took at the base and what it takes now, per operation."""

    path: str
    engine: str
    base: float
    change: float
    allowed: float = 0.0  # percent more than the base

    @property
    def percent(self) -> float:
        return (self.change / self.base - 1) * 100

    @property
    def worse_by(self) -> float:
        """Percent above what it is held to."""
        return (self.change / (self.base * (1 + self.allowed / 100)) - 1) * 100

    @property
    def fails(self) -> bool:
        return round(self.worse_by, 3) > LIMIT

    def __str__(self) -> str:
        allowance = f", where {self.allowed:+.1f} % stand in the table" if self.allowed else ""
        return (
            f"{self.path} on {self.engine}: {self.base:.0f} instructions at the base, "
            f"{self.change:.0f} now, {self.percent:+.1f} %{allowance}"
        )


def compare(base: Counts, change: Counts, table: Table | None) -> list[Row]:
    """A row for whatever both were counted of; `table` for what it allows."""
    return [
        Row(path, engine, base[path][engine], now, table.allowed(path, engine) if table else 0.0)
        for path, engines in change.items()
        for engine, now in engines.items()
        if engine in base.get(path, {})
    ]


def lines(rows: Iterable[Row]) -> list[str]:
    """To be printed."""
    text = [f"{'':34}{'engine':8}{'base':>9}{'change':>9}"]
    for row in rows:
        mark = "  WORSE" if row.fails else ""
        numbers = f"{row.base:9.0f}{row.change:9.0f}{row.percent:+8.1f} %"
        text.append(f"{row.path:34}{row.engine:8}{numbers}{mark}")
    return text
