"""What must be there and what may be called, in plain Python: no code of the product, no Lance.

A model knows what every version of the source held. From two versions it says what a view must hold
and exactly which calls its function needs: one for each row that enters, or whose inputs to the
function are others. Calls are told by the lines that functions leave (`line`, `part_line`).
"""

import copy
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

KINDS = ("k0", "k1", "k2")


@dataclass
class Row:
    """A row of the source; its id is never another row's."""

    id: int
    text: str
    x: int
    kind: str
    other: int = 0
    # What the column `value` was computed from, if it was.
    filled: str | None = None

    @property
    def passes(self) -> bool:
        """The filter of all views, on a column that no function reads."""
        return self.x % 5 != 0

    @property
    def is_fresh(self) -> bool:
        return self.filled == self.text


Rows = dict[int, Row]
Line = str


def value_of(id: int, text: str) -> str:
    return f"{id}={text}"


def words_of(text: str) -> list[str]:
    """What the chunker makes of a text: none to three words."""
    return [] if text == "-" else text.split(" ")


def line(id: int, text: str) -> Line:
    return f"{id},{text}"


def part_line(kind: str, rows: Iterable[tuple[int, str]]) -> Line:
    return f"{kind}|" + ";".join(line(*row) for row in sorted(rows))


@dataclass
class Model:
    """The source as it must be, and as it was in each version that a writer made."""

    now: Rows = field(default_factory=dict)
    past: dict[int, Rows] = field(default_factory=dict)
    # The versions that a restore made.
    restored: list[int] = field(default_factory=list)
    next_id: int = 0

    def note(self, version: int) -> None:
        self.past[version] = copy.deepcopy(self.now)

    def at(self, version: int) -> Rows:
        """The rows of a version, whose own commit may have been a job's: those change no input."""
        return self.past[max(each for each in self.past if each <= version)]

    def new_rows(self, count: int, text: str) -> list[Row]:
        made = []
        for _ in range(count):
            id = self.next_id
            words = " ".join(f"{text}{id % 4}" for _ in range(id % 3)) or "-"
            made.append(Row(id, words, id % 7, KINDS[id % 3]))
            self.next_id += 1
        return made

    def stale(self) -> Counter[Line]:
        """The calls that the column `value` needs."""
        return Counter(line(r.id, r.text) for r in self.now.values() if not r.is_fresh)


# Views ----------------------------------------------------------------------------------------


def holds(view: str, rows: Rows) -> list[tuple[Any, ...]]:
    """What a view must hold, sorted."""
    return sorted(_rows_of(view, [row for row in rows.values() if row.passes]), key=repr)


def needs(view: str, before: Rows | None, now: Rows) -> Counter[Line]:
    """The calls that a refresh needs, from the version that the view has, None at first."""
    if view in ("plain", "groups"):
        return Counter()
    find = _parts if view == "parts" else _inputs
    known = {} if before is None else find(before)
    return Counter(made for key, made in find(now).items() if known.get(key) != made)


def keys_that_stay(view: str, before: Rows, now: Rows) -> set[tuple[Any, ...]]:
    """Rows of a view, as `holds` has them, that a refresh must not touch."""
    if view == "parts" or view == "groups":
        return set()
    return set(holds(view, before)) & set(holds(view, now))


def _inputs(rows: Rows) -> dict[Any, Line]:
    return {row.id: line(row.id, row.text) for row in rows.values() if row.passes}


def _parts(rows: Rows) -> dict[Any, Line]:
    found: dict[str, list[tuple[int, str]]] = {}
    for row in rows.values():
        if row.passes:
            found.setdefault(row.kind, []).append((row.id, row.text))
    return {kind: part_line(kind, members) for kind, members in found.items()}


def _rows_of(view: str, rows: list[Row]) -> Iterator[tuple[Any, ...]]:
    if view == "plain":
        yield from ((row.id, row.text, row.x + 1) for row in rows)
    elif view == "filled":
        yield from ((row.id, row.text, value_of(row.id, row.text)) for row in rows)
    elif view == "chunks":
        for row in rows:
            yield from ((row.id, n, word) for n, word in enumerate(words_of(row.text)))
    else:
        yield from _grouped(view, rows)


def _grouped(view: str, rows: list[Row]) -> Iterator[tuple[Any, ...]]:
    for kind in sorted({row.kind for row in rows}):
        members = [row for row in rows if row.kind == kind]
        if view == "parts":
            total = sum(len(row.text) for row in members)
            yield kind, sum(row.id for row in members), len(members), total
        else:
            yield kind, len(members), sum(row.x for row in members), max(r.text for r in members)
