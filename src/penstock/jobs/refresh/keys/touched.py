"""Find the touched keys: those of all joined rows that have a changed row, now or before.

A row of a table is joined with rows as they are now and with changed rows as they were. So some
keys are found that nothing happened to; they are computed again, in vain.
"""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.jobs.refresh.keys.key_sets import KeySet
from penstock.jobs.refresh.keys.source_rows import (
    MAX_JOINED,
    ROW_ID,
    Columns,
    SourceRows,
    TooManyRows,
)
from penstock.lance.diff.masks import Mask
from penstock.lance.diff.row_sets import Ids
from penstock.model.views import Branch, KeyPart, Occurrence

# A column by its occurrence and path; the row id is `ROW_ID`.
Name = tuple[int, str]
Joined = dict[Name, pa.Array]


def find_touched(branch: Branch, sources: Mapping[str, SourceRows]) -> Iterator[list[pa.Array]]:
    """Yield the keys that changed rows of a branch touch; raises TooManyRows."""
    for number, occurrence in enumerate(branch.occurrences):
        if sources[occurrence.source].changed:
            yield from _Walk(branch, sources, number).run()


class _Walk:
    """From the changed rows of one occurrence to all that have columns of the key."""

    def __init__(self, branch: Branch, sources: Mapping[str, SourceRows], start: int) -> None:
        self._branch = branch
        self._sources = sources
        self._start = start
        self._keys = [each for each in branch.keys if each is not None]
        self._needed = _list_needed(branch)
        held = {key.occurrence for key in self._keys}
        self._wanted = _find_between(branch, {start, *held, *_list_losers(branch, start, held)})
        self._done = {start}

    def run(self) -> Iterator[list[pa.Array]]:
        source = self._sources[self._branch.occurrences[self._start].source]
        for changed in source.read_changed(self._needed[self._start]):
            self._done = {self._start}
            rows = {(self._start, path): column for path, column in changed.items()}
            if not len(changed[ROW_ID]):
                continue
            yield self._list_keys(self._follow(rows, self._start))

    def _follow(self, rows: Joined, at: int) -> Joined:
        """Join what is below an occurrence first, then what is above it."""
        for child, each in enumerate(self._branch.occurrences):
            if each.parent == at and child in self._wanted and child not in self._done:
                self._done.add(child)
                rows = self._follow(self._join_child(rows, child), child)
        parent = self._branch.occurrences[at].parent
        if parent is not None and parent in self._wanted and parent not in self._done:
            self._done.add(parent)
            rows = self._follow(self._join_parent(rows, at), parent)
        return rows

    def _join_child(self, rows: Joined, child: int) -> Joined:
        occurrence = self._branch.occurrences[child]
        mine = [(occurrence.parent or 0, path) for _, path in occurrence.pairs]
        its = [path for path, _ in occurrence.pairs]
        left, right, found = self._match(rows, mine, child, its)
        made = _take(rows, left) | _take(found, right)
        if occurrence.join != "left":
            return made
        # Rows that have no match get nulls; other conditions may leave any row without one.
        alone = np.ones(_count(rows), bool)
        if occurrence.is_exact:
            alone[left] = False
        return _add(made, _take(rows, np.flatnonzero(alone)))

    def _join_parent(self, rows: Joined, child: int) -> Joined:
        occurrence = self._branch.occurrences[child]
        parent = occurrence.parent or 0
        mine = [(child, path) for path, _ in occurrence.pairs]
        its = [path for _, path in occurrence.pairs]
        left, right, found = self._match(rows, mine, parent, its)
        made = _take(rows, left) | _take(found, right)
        below = _list_below(self._branch, child)
        if occurrence.join != "left" or not any(key.occurrence in below for key in self._keys):
            return made
        # Rows of the parent may have lost or gained their only match.
        alone = self._find_lone(rows, mine, occurrence)[left]
        lone = {name: column for name, column in made.items() if name[0] not in below}
        return _add(made, _take(lone, np.flatnonzero(alone)))

    def _find_lone(self, rows: Joined, mine: Sequence[Name], occurrence: Occurrence) -> Mask:
        """Which rows may be, or have been, the only match of a parent."""
        # Changed rows count as matches without being filtered: `Source.filter` is never set for a
        # table on the null-filled side (`sql/spark/pushdown.py`).
        alone = np.ones(_count(rows), bool)
        if not occurrence.is_exact or self._start != mine[0][0]:
            return alone
        paths = [path for _, path in mine]
        source = self._sources[occurrence.source]
        now, then = source.read_changed(paths)
        values = [rows[name] for name in mine]
        kept = source.find(paths, [(paths, KeySet(values))], MAX_JOINED)
        unchanged = kept.take(~np.isin(kept.ids, np.asarray(now[ROW_ID])))
        stays = KeySet([unchanged.columns[path] for path in paths]).contains(values)
        both = [KeySet([side[path] for path in paths]).contains(values) for side in (now, then)]
        return ~(stays | (both[0] & both[1]))

    def _match(
        self, rows: Joined, mine: Sequence[Name], other: int, its: Sequence[str]
    ) -> tuple[Ids, Ids, Joined]:
        """The pairs of rows with equal values, and the other side's rows."""
        values = [rows[name] for name in mine]
        wanted = KeySet([column.filter(pa.array(_have_all(values))) for column in values])
        found = self._find_rows(other, its, wanted)
        theirs = [found[(other, path)] for path in its]
        ours, others = wanted.find(values), wanted.find(theirs)
        ours[~_have_all(values)] = -1
        others[~_have_all(theirs)] = -1
        return *_pair(ours, others), found

    def _find_rows(self, number: int, paths: Sequence[str], wanted: KeySet) -> Joined:
        """All rows of an occurrence with these keys: now, and of changed ones before."""
        source = self._sources[self._branch.occurrences[number].source]
        needed = self._needed[number]
        # Each of them makes a pair at least, so more than these are too many pairs, too.
        now = source.find(needed, [(paths, wanted)], MAX_JOINED)
        parts: list[Columns] = [{**now.columns, ROW_ID: pa.array(now.ids, pa.int64())}]
        if source.changed:
            _, then = source.read_changed(needed)
            taken = pa.array(wanted.contains([then[path] for path in paths]))
            parts.append({path: pc.filter(column, taken) for path, column in then.items()})
        return {
            (number, path): pa.concat_arrays([part[path] for part in parts])
            for path in (*needed, ROW_ID)
        }

    def _list_keys(self, rows: Joined) -> list[pa.Array]:
        count = _count(rows)
        found = []
        for key in self._branch.keys:
            name = None if key is None else (key.occurrence, key.path or ROW_ID)
            found.append(pa.nulls(count, pa.int64()) if name is None else rows[name])
        return found


def list_key_paths(branch: Branch, number: int) -> list[tuple[int, str]]:
    """The columns of the key that an occurrence has: their places in the key, and paths."""
    return [
        (place, key.path or ROW_ID)
        for place, key in enumerate(branch.keys)
        if isinstance(key, KeyPart) and key.occurrence == number
    ]


def _list_needed(branch: Branch) -> list[list[str]]:
    """For each occurrence: the columns that join it, and those of the key."""
    found: list[dict[str, None]] = [{} for _ in branch.occurrences]
    for number, each in enumerate(branch.occurrences):
        for mine, its in each.pairs:
            found[number][mine] = None
            found[each.parent or 0][its] = None
        for _, path in list_key_paths(branch, number):
            found[number][path] = None
    return [[path for path in each if path != ROW_ID] for each in found]


def _list_losers(branch: Branch, start: int, held: set[int]) -> list[int]:
    """The occurrences whose rows may lose, with a row of `start`, all that the key is made of."""
    found = []
    at = start
    while (parent := branch.occurrences[at].parent) is not None:
        if branch.occurrences[at].join == "left" and held & _list_below(branch, at):
            found.append(parent)
        at = parent
    return found


def _find_between(branch: Branch, ends: set[int]) -> set[int]:
    """All occurrences on the ways between some."""
    chains = []
    for end in ends:
        chain: list[int] = []
        at: int | None = end
        while at is not None:
            chain.append(at)
            at = branch.occurrences[at].parent
        chains.append(chain[::-1])
    shared = 0
    while all(len(chain) > shared for chain in chains) and len({c[shared] for c in chains}) == 1:
        shared += 1
    return {each for chain in chains for each in chain[shared - 1 :]}


def _list_below(branch: Branch, top: int) -> set[int]:
    below = {top}
    for number, each in enumerate(branch.occurrences):
        if each.parent in below:
            below.add(number)
    return below


def _have_all(columns: Sequence[pa.Array]) -> Mask:
    """Which rows have no null: null equals nothing."""
    found = np.ones(len(columns[0]), bool)
    for column in columns:
        found &= np.asarray(pc.is_valid(column))
    return found


def _pair(ours: Ids, others: Ids) -> tuple[Ids, Ids]:
    """All pairs of places with the same number, which is not negative."""
    order = np.argsort(others, kind="stable")
    ordered = others[order]
    first = np.searchsorted(ordered, ours, side="left")
    counts = np.where(ours < 0, 0, np.searchsorted(ordered, ours, side="right") - first)
    total = int(counts.sum())
    if total > MAX_JOINED:
        raise TooManyRows
    left = np.repeat(np.arange(len(ours)), counts)
    within = np.arange(total) - np.repeat(np.cumsum(counts) - counts, counts)
    return left, order[np.repeat(first, counts) + within]


def _count(rows: Joined) -> int:
    return len(next(iter(rows.values())))


def _take(rows: Joined, which: Ids) -> Joined:
    places = pa.array(which, pa.int64())
    return {name: column.take(places) for name, column in rows.items()}


def _add(rows: Joined, more: Joined) -> Joined:
    """Both sets of rows; columns that the second does not have are null there."""
    count = _count(more)
    return {
        name: pa.concat_arrays([column, more.get(name, pa.nulls(count, column.type))])
        for name, column in rows.items()
    }
