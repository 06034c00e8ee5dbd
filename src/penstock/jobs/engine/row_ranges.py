"""Divide a table's rows among tasks: ranges of its fragments, or chosen rows of them."""

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from lance import LanceDataset
from msgspec import Struct, structs

from penstock.lance.diff.masks import pack, unpack
from penstock.lance.diff.row_sets import Ids

# The least rows worth a task when there is room for more tasks, and the most for one task.
MIN_TASK_ROWS, MAX_TASK_ROWS = 32, 50_000


class RowRange(Struct, frozen=True, kw_only=True):
    """Rows of one fragment: a range, or some rows of it."""

    fragment: int
    start: int
    end: int
    # How many rows.
    rows: int
    # A mask of the range. None: all live rows.
    need: bytes | None = None

    def wanted(self, physical_rows: int) -> Any:
        """Booleans by offset in the fragment; None stands for all."""
        if self.need is None and (self.start, self.end) == (0, physical_rows):
            return None
        found = np.zeros(physical_rows, bool)
        length = self.end - self.start
        found[self.start : self.end] = True if self.need is None else unpack(self.need, length)
        return found


class NeededRows(RowRange, frozen=True, kw_only=True):
    """Rows of one fragment that a view needs, and what it already has of them."""

    physical_rows: int
    # Masks of the range: the rows that the view has and, by function, those whose value there is
    # still right.
    was: bytes | None = None
    kept: tuple[bytes | None, ...] = ()

    def mask(self, packed: bytes | None) -> Any:
        """Which of the fragment's rows a mask selects; None stands for all."""
        if packed is None:
            return None
        found = np.zeros(self.physical_rows, bool)
        found[self.start : self.end] = unpack(packed, self.end - self.start)
        return found

    def divide(self, ranges: Iterable[tuple[int, int, int]]) -> "Iterator[NeededRows]":
        """Split rows into parts, each given by its range and row count; splits masks, too."""
        need, was, *kept = (
            None if packed is None else unpack(packed, self.end - self.start)
            for packed in (self.need, self.was, *self.kept)
        )
        for start, end, rows in ranges:
            at = slice(start - self.start, end - self.start)
            yield structs.replace(
                self,
                start=start,
                end=end,
                rows=rows,
                need=_cut(need, at),
                was=_cut(was, at),
                kept=tuple(_cut(each, at) for each in kept),
            )


def _cut(mask: Any, at: slice) -> bytes | None:
    return pack(mask[at]) if mask is not None and mask[at].any() else None


def count_tasks(
    rows: int, slots: int, concurrency: int | None = None, task_rows: int | None = None
) -> int:
    """How many tasks to use for so many rows; there is never more than one per slot."""
    if task_rows:
        count = -(-rows // task_rows)
    else:
        count = max(min(slots, -(-rows // MIN_TASK_ROWS)), -(-rows // MAX_TASK_ROWS))
    return max(1, min(count, concurrency or count))


def divide_all(dataset: LanceDataset, count: int) -> tuple[tuple[RowRange, ...], ...]:
    """Divide all rows into parts of about the same size."""
    sizes = [(each.fragment_id, each.physical_rows) for each in dataset.get_fragments()]
    total = sum(rows for _, rows in sizes)
    tasks: list[list[RowRange]] = [[] for _ in range(count)]
    at = 0
    for fragment, rows in sizes:
        start = 0
        while start < rows:
            task = min(count - 1, at * count // max(1, total))
            # Where the next task begins.
            border = rows if task == count - 1 else -(-(task + 1) * total // count)
            end = rows if task == count - 1 else min(rows, start + border - at)
            tasks[task].append(RowRange(fragment=fragment, start=start, end=end, rows=end - start))
            at, start = at + end - start, end
    return tuple(tuple(each) for each in tasks if each)


def divide_some(fragments: Ids, offsets: Ids, count: int) -> tuple[tuple[RowRange, ...], ...]:
    """Divide chosen rows into parts of about the same size."""
    order = np.lexsort((offsets, fragments))
    parts = np.array_split(order, count)
    return tuple(_to_units(fragments[part], offsets[part]) for part in parts if len(part))


def _to_units(fragments: Ids, offsets: Ids) -> tuple[RowRange, ...]:
    units: list[RowRange] = []
    for fragment in np.unique(fragments).tolist():
        mine = offsets[fragments == fragment]
        start, end = int(mine[0]), int(mine[-1]) + 1
        need = None
        if len(mine) < end - start:
            mask = np.zeros(end - start, bool)
            mask[mine - start] = True
            need = pack(mask)
        units.append(RowRange(fragment=fragment, start=start, end=end, rows=len(mine), need=need))
    return tuple(units)
