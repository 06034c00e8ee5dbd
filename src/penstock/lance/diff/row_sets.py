"""Sets of row ids, stored as runs of neighbours, and their files.

A file has a header of eight bytes, then the compressed gaps and lengths of the runs.
"""

import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from penstock.errors import InvalidTableState
from penstock.lance.diff.masks import Mask

Ids = np.ndarray[Any, np.dtype[np.int64]]

HEADER = b"PSROWS1\n"


class RowPlaces(NamedTuple):
    """Rows by id, with the fragment and offset of each; sorted by id."""

    ids: Ids
    fragments: Ids
    offsets: Ids

    def take(self, which: Mask | Ids) -> "RowPlaces":
        return RowPlaces(self.ids[which], self.fragments[which], self.offsets[which])


@dataclass(frozen=True, slots=True, eq=False)
class RowSet:
    """Ranges of row ids (start, end); they are sorted and do not touch."""

    starts: Ids
    ends: Ids

    def __len__(self) -> int:
        return int((self.ends - self.starts).sum())

    def contains(self, ids: Ids) -> Mask:
        """Whether each id is in the set."""
        if not len(self.starts):
            return np.zeros(len(ids), bool)
        run = np.searchsorted(self.starts, ids, side="right") - 1
        found: Mask = (run >= 0) & (ids < self.ends[np.maximum(run, 0)])
        return found

    @property
    def ids(self) -> Ids:
        """All ids, in order."""
        counts = self.ends - self.starts
        before = np.cumsum(counts) - counts
        return np.repeat(self.starts - before, counts) + np.arange(counts.sum())

    def encode(self) -> bytes:
        gaps = self.starts - np.concatenate([[0], self.ends[:-1]])
        both = np.stack([gaps, self.ends - self.starts]).astype("<i8")
        # For runs without a pattern, level 6 takes five times as long and saves 3 %.
        return HEADER + zlib.compress(both.tobytes(), 4)


def make_row_set(ids: Iterable[Ids]) -> RowSet:
    """The set of all these ids, given in parts and in any order."""
    starts: list[Any] = []
    ends: list[Any] = []
    for part in ids:
        if len(part):
            # Sorted ids cost nothing.
            ordered = np.sort(np.asarray(part, np.int64), kind="stable")
            breaks = np.flatnonzero(np.diff(ordered) > 1)
            starts.append(ordered[np.concatenate([[0], breaks + 1])])
            ends.append(ordered[np.concatenate([breaks, [len(ordered) - 1]])] + 1)
    if not starts:
        return RowSet(np.empty(0, np.int64), np.empty(0, np.int64))
    return _join(np.concatenate(starts), np.concatenate(ends))


def join_row_sets(parts: Iterable[bytes]) -> RowSet:
    """The union of sets that `encode` wrote; no bytes are an empty one."""
    return make_row_set(decode_row_set(part).ids for part in parts if part)


def decode_row_set(data: bytes) -> RowSet:
    """Decode a set that `encode` wrote."""
    try:
        if not data.startswith(HEADER):
            raise ValueError("another header")
        raw = zlib.decompress(data[len(HEADER) :])
        both = np.frombuffer(raw, "<i8").astype(np.int64).reshape(2, -1)
    except (ValueError, zlib.error) as error:
        raise InvalidTableState(f"a file of row ids is damaged: {error}") from error
    ends = np.cumsum(both.sum(axis=0))
    return RowSet(ends - both[1], ends)


def sort_distinct(*parts: Ids) -> Ids:
    """Each of some ids once, in order.

    Not np.unique: its hash table takes a hundred times as long for ids that follow each other.
    """
    ordered = np.sort(np.concatenate(parts))
    is_first = np.ones(len(ordered), bool)
    is_first[1:] = ordered[1:] != ordered[:-1]
    return ordered[is_first]


def is_among(ids: Ids, wanted: Ids) -> Mask:
    """Whether each id is one of the wanted ones, which are sorted."""
    if not len(wanted):
        return np.zeros(len(ids), bool)
    found: Mask = (ids >= wanted[0]) & (ids <= wanted[-1])
    # Often most ids are far from all of the wanted ones.
    near = np.flatnonzero(found)
    found[near] = wanted[np.searchsorted(wanted, ids[near])] == ids[near]
    return found


def split_runs(values: Ids) -> list[slice]:
    """Split where neighbours are equal."""
    if not len(values):
        return []
    cuts = (np.flatnonzero(np.diff(values)) + 1).tolist()
    return [slice(a, b) for a, b in zip([0, *cuts], [*cuts, len(values)], strict=True)]


def _join(starts: Ids, ends: Ids) -> RowSet:
    """Join runs that may overlap or touch into a set."""
    order = np.argsort(starts, kind="stable")
    starts, ends = starts[order], np.maximum.accumulate(ends[order])
    first = np.concatenate([[True], starts[1:] > ends[:-1]])
    last = np.concatenate([first[1:], [True]])
    return RowSet(starts[first], ends[last])
