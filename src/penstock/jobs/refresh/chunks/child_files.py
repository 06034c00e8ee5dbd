"""Write the children that a task makes into files: new ones, and those that move.

A child that the view has, with all of its values, stays where it is. One that only got another
number, or inherits other values, moves: it is written with its row id, so that what users added to
it is carried over.
"""

from typing import Any

import numpy as np
import pyarrow as pa

from penstock.jobs.refresh.chunks.children import ChildRows, HeldChildren
from penstock.jobs.refresh.chunks.matching import ComparedColumns, match_children
from penstock.jobs.refresh.row_files import RowFiles
from penstock.lance.diff.equal import as_ids
from penstock.lance.diff.masks import Mask
from penstock.lance.diff.row_sets import Ids
from penstock.model.views import SOURCE_ROW_ID


class ChildFiles:
    """The files of one task, and which rows of the view stay."""

    def __init__(
        self,
        new: RowFiles,
        moved: RowFiles,
        held: HeldChildren | None,
        compared: ComparedColumns | None,
    ) -> None:
        self._new, self._moved = new, moved
        self._held, self._compared = held, compared
        self.rows = 0
        # Source rows whose children all stay, and no other comes.
        self.unchanged = 0
        self._staying: list[Ids] = []
        self._alike: list[Ids] = []

    @property
    def staying(self) -> Ids:
        """Rows of the view that stay where they are."""
        return np.concatenate([np.empty(0, np.int64), *self._staying])

    @property
    def alike(self) -> Ids:
        """Rows of the view that move, and differ in what the function made."""
        return np.concatenate([np.empty(0, np.int64), *self._alike])

    def add(self, sources: Ids, made: pa.RecordBatch) -> None:
        """Add the children that were made of some source rows, which may have made none."""
        rows = self._read(sources)
        if rows is None:
            self._write(self._new, made)
            return
        held, values = rows
        assert self._compared is not None
        found = match_children(made, values, self._compared)
        self._note(held, made, found.same)
        is_moved = (found.partners >= 0) & ~found.same
        self._staying.append(held.row_ids[found.partners[found.same]])
        self._alike.append(held.row_ids[found.partners[found.alike]])
        self._write(self._new, _filter(made, found.partners < 0))
        self.move(_filter(made, is_moved), held.row_ids[found.partners[is_moved]])

    def move(self, rows: pa.RecordBatch, ids: Ids) -> None:
        """Add rows that the view has, with their ids and the values that they get."""
        self._write(self._moved, rows, ids)

    def close(self) -> tuple[str, ...]:
        """Finish the files; returns all fragments."""
        return (*self._new.close(), *self._moved.close())

    def _read(self, sources: Ids) -> tuple[ChildRows, pa.RecordBatch] | None:
        """The children that the view has of these rows; None when it has none."""
        if self._held is None:
            return None
        rows, values = self._held.read(sources)
        return (rows, values) if len(rows.sources) else None

    def _note(self, held: ChildRows, made: pa.RecordBatch, same: Mask) -> None:
        now = as_ids(made.column(SOURCE_ROW_ID))
        sources, counts = np.unique(held.sources, return_counts=True)
        is_unchanged = (counts == _count(sources, now)) & (counts == _count(sources, now[same]))
        self.unchanged += int(is_unchanged.sum())

    def _write(self, files: RowFiles, rows: pa.RecordBatch, ids: Ids | None = None) -> None:
        self.rows += rows.num_rows
        files.write(rows, ids)


def _count(values: Ids, among: Ids) -> Any:
    """How often each of some sorted values is among others."""
    ordered = np.sort(among)
    return np.searchsorted(ordered, values, "right") - np.searchsorted(ordered, values)


def _filter(rows: pa.RecordBatch, which: Mask) -> pa.RecordBatch:
    return rows if which.all() else rows.take(pa.array(np.flatnonzero(which)))
