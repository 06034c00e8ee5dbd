"""The difference between two versions of a table: rows added, deleted and changed. Blocks.

Only the two versions are compared, whatever happened in between. A fragment with the same files and
the same deleted rows is skipped, one with other deleted rows costs only the difference, and the
values of other rows are compared by their stable ids.
"""

import hashlib
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from lance import LanceDataset

from penstock.lance.columns.fields import get_field
from penstock.lance.diff.blobs import Side, fields_equal
from penstock.lance.diff.compare import step_rows
from penstock.lance.diff.fragments import all_ids, describe_files
from penstock.lance.diff.masks import Mask
from penstock.lance.diff.moves import find_unmoved
from penstock.lance.diff.row_sets import Ids, RowPlaces, is_among
from penstock.lance.read.by_id import RowReader
from penstock.lance.read.row_ids import scan_rows
from penstock.model.fragments import FragmentState

SCAN_ROWS = 262_144


@dataclass(frozen=True, slots=True, eq=False)
class Difference:
    """Rows that only one of two versions has, and rows that both have with other values.

    Places are those in the new version; for deleted rows, those in the old one.
    """

    inserted: RowPlaces
    deleted: RowPlaces
    changed: RowPlaces
    # For each compared path: which of the changed rows have another value there.
    differing: dict[str, Mask]
    # The fragments of the new version that were read.
    fragments: int

    @property
    def is_empty(self) -> bool:
        return not (len(self.inserted.ids) or len(self.deleted.ids) or len(self.changed.ids))

    def differs(self, paths: Collection[str]) -> Mask:
        """Which of the changed rows have another value in one of the paths."""
        found = np.zeros(len(self.changed.ids), bool)
        for path in paths:
            found |= self.differing[path]
        return found


def compare(
    now: LanceDataset,
    then: LanceDataset,
    paths: Sequence[str],
    paths_then: Sequence[str] | None = None,
) -> Difference:
    """Compare the rows of two versions, as far as these fields are concerned.

    Both have stable row ids. `paths_then` are what the fields are called in the old version, if
    they had other names. Raises ColumnNotFound when a version lacks a field.
    """
    paths_then = paths if paths_then is None else paths_then
    new, old = _describe(now, paths), _describe(then, paths_then)
    same = {id for id, state in new.items() if old.get(id) == state}
    kept = {id for id in new.keys() - same if _has_files_of(old.get(id), new[id])}
    came = _scan(now, new.keys() - same - kept)
    went = _scan(then, old.keys() - same - kept)
    if kept:
        here, there = _scan(now, kept), _scan(then, kept)
        came = join_rows(came, here.take(~is_among(here.ids, there.ids)))
        went = join_rows(went, there.take(~is_among(there.ids, here.ids)))
    is_new, is_gone = ~is_among(came.ids, went.ids), ~is_among(went.ids, came.ids)
    both = came.take(~is_new)
    unequal = _compare(now, then, paths, paths_then, both, went.take(~is_gone))
    changed = np.zeros(len(both.ids), bool)
    for mask in unequal.values():
        changed |= mask
    return Difference(
        came.take(is_new),
        went.take(is_gone),
        both.take(changed),
        {path: mask[changed] for path, mask in unequal.items()},
        len(new) - len(same),
    )


def find_taken(dataset: LanceDataset, rows: RowPlaces, where: str) -> Mask:
    """Which of a version's rows match a filter."""
    holding = np.unique(rows.fragments).tolist()
    parts = [ids for ids, _, _ in scan_rows(dataset, holding, where)]
    return is_among(rows.ids, np.sort(np.concatenate([rows.ids[:0], *parts])))


def count_changed(
    now: LanceDataset,
    then: LanceDataset,
    paths: Sequence[str],
    paths_then: Sequence[str] | None = None,
) -> int:
    """Estimate from fragments alone how many rows changed; rows moved by a compaction count."""
    new, old = _describe(now, paths), _describe(then, paths if paths_then is None else paths_then)
    came = went = 0
    for id in new.keys() | old.keys():
        here, there = new.get(id), old.get(id)
        rows_here, rows_there = _count_live(here), _count_live(there)
        if here is not None and _has_files_of(there, here):
            came += max(0, rows_here - rows_there)
            went += max(0, rows_there - rows_here)
        else:
            came, went = came + rows_here, went + rows_there
    return max(came, went)


def _count_live(state: FragmentState | None) -> int:
    # `_describe` describes the rows of a fragment by those that were deleted.
    return 0 if state is None else state.physical_rows - state.rows


def find_changed(
    now: LanceDataset,
    then: LanceDataset,
    paths: Sequence[str],
    new: RowPlaces,
    old: RowPlaces,
    paths_then: Sequence[str],
) -> Mask:
    """Which of some rows, given with their places in both versions, have other values."""
    changed = np.zeros(len(new.ids), bool)
    for mask in _compare(now, then, paths, paths_then, new, old).values():
        changed |= mask
    return changed


def scan_all(dataset: LanceDataset, fragments: Collection[int] | None = None) -> RowPlaces:
    """All rows of a version, or those of some of its fragments."""
    ids = {fragment.fragment_id for fragment in dataset.get_fragments()}
    return _scan(dataset, ids if fragments is None else ids & set(fragments))


def join_rows(*parts: RowPlaces) -> RowPlaces:
    """Join disjoint sets of rows."""
    return _sort(*(np.concatenate(each) for each in zip(*parts, strict=True)))


def _describe(dataset: LanceDataset, paths: Sequence[str]) -> dict[int, FragmentState]:
    """Describe the fragments: where the fields are in them, and which rows they have."""
    fields = [get_field(dataset, path).lance for path in paths]
    # The order matters as well: two columns may swap names.
    order = ".".join(str(field.id()) for field in fields)
    wanted = frozenset(id for field in fields for id in all_ids(field))
    return {
        fragment.fragment_id: describe_files(
            fragment.fragment_id,
            fragment.physical_rows,
            fragment.num_deletions,
            fragment.data_files(),
            fragment.metadata.overlays,
            fragment.deletion_file() or "",
            # Without a field to read, only row ids tell whose rows these are.
            f"{order}>{_show_ids(fragment.metadata.row_id_meta)}",
            frozenset(),
            wanted,
        )
        for fragment in dataset.get_fragments()
    }


def _show_ids(meta: Any) -> str:
    """The row ids of a fragment, in short form."""
    return "" if meta is None else hashlib.sha256(str(meta.json()).encode()).hexdigest()


def _has_files_of(then: FragmentState | None, now: FragmentState) -> bool:
    return then is not None and (then.physical_rows, then.input_files) == (
        now.physical_rows,
        now.input_files,
    )


def _scan(dataset: LanceDataset, fragments: Collection[int]) -> RowPlaces:
    parts: list[tuple[Ids, Ids, Ids]] = [(np.empty(0, np.int64),) * 3]
    parts += scan_rows(dataset, fragments, batch_rows=SCAN_ROWS)
    return _sort(*(np.concatenate(each) for each in zip(*parts, strict=True)))


def _sort(ids: Ids, fragments: Ids, offsets: Ids) -> RowPlaces:
    if (np.diff(ids) > 0).all():
        return RowPlaces(ids, fragments, offsets)
    return RowPlaces(ids, fragments, offsets).take(np.argsort(ids, kind="stable"))


def _compare(
    now: LanceDataset,
    then: LanceDataset,
    paths: Sequence[str],
    paths_then: Sequence[str],
    new: RowPlaces,
    old: RowPlaces,
) -> dict[str, Mask]:
    """Which of these rows, which both versions have, have other values; by path."""
    unequal = {path: np.zeros(len(new.ids), bool) for path in paths}
    looked = np.flatnonzero(~find_unmoved(now, then, paths, paths_then, new, old))
    if not len(looked) or not paths:
        return unequal
    holding = np.unique(new.fragments[looked]).tolist()
    here = RowReader(now, holding)
    there = RowReader(then, np.unique(old.fragments[looked]).tolist())
    fields = [get_field(now, path).lance for path in paths]
    for rows in _steps(looked, step_rows(now, holding)):
        ids = new.ids[rows]
        left, right = here.read(ids, paths), there.read(ids, paths_then)
        for n, path in enumerate(paths):
            sides = Side(here, path, left[n]), Side(there, paths_then[n], right[n])
            unequal[path][rows] = ~fields_equal(*sides, fields[n], ids)
    return unequal


def _steps(rows: Ids, step: int) -> Iterator[Ids]:
    for start in range(0, len(rows), step):
        yield rows[start : start + step]
