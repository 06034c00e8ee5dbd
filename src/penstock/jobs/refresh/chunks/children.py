"""Find and read the rows of a view that a chunker made from given source rows. It blocks."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from lance import LanceDataset

from penstock.jobs.kept.parts import FoundRows
from penstock.jobs.refresh.inputs import take
from penstock.lance.diff.equal import as_ids
from penstock.lance.diff.masks import Mask
from penstock.lance.diff.row_sets import Ids, RowSet, is_among, sort_distinct
from penstock.lance.errors import translated
from penstock.lance.read.by_id import RowReader
from penstock.lance.read.scans import ADDRESS, OFFSET_BITS, quote_parts
from penstock.model.views import CHILD_INDEX, SOURCE_ROW_ID

ROW_ID = "_rowid"
SCAN_ROWS = 262_144
# How many ids Lance handles quickly in one filter.
MAX_LISTED = 1000


class ChildRows(NamedTuple):
    """Rows of a view: their source rows, their child numbers, ids, and places."""

    sources: Ids
    numbers: Ids
    row_ids: Ids
    fragments: Ids
    offsets: Ids

    def take(self, which: Mask | Ids) -> "ChildRows":
        return ChildRows(*(each[which] for each in self))


def find_children(view: LanceDataset, sources: Ids | None = None) -> ChildRows:
    """The rows that were made from these source rows, or all; by source row, in order."""
    empty = np.empty(0, np.int64)
    parts: list[tuple[Any, ...]] = [(empty,) * 5]
    where = None
    if sources is not None:
        if not len(sources):
            return ChildRows(*parts[0])
        sources = sort_distinct(sources)
        if len(sources) <= MAX_LISTED:
            where = f"`{SOURCE_ROW_ID}` IN ({', '.join(map(str, sources.tolist()))})"
    with translated():
        scanner = view.scanner(
            columns=[SOURCE_ROW_ID, CHILD_INDEX],
            filter=where,
            with_row_id=True,
            with_row_address=True,
            batch_size=SCAN_ROWS,
        )
        for batch in scanner.to_batches():
            addresses = np.asarray(batch.column(ADDRESS))
            part: tuple[Any, ...] = (
                as_ids(batch.column(SOURCE_ROW_ID)),
                as_ids(batch.column(CHILD_INDEX)),
                as_ids(batch.column(ROW_ID)),
                (addresses >> np.uint64(32)).astype(np.int64),
                (addresses & np.uint64(OFFSET_BITS)).astype(np.int64),
            )
            if sources is not None and where is None:
                mine = is_among(part[0], sources)
                part = tuple(each[mine] for each in part)
            parts.append(part)
    found = ChildRows(*(np.concatenate(each) for each in zip(*parts, strict=True)))
    return found.take(np.lexsort((found.numbers, found.sources)))


class HeldChildren:
    """The children that a view has of some source rows, read when they are compared."""

    def __init__(self, view: LanceDataset, sources: Ids, columns: Sequence[str]) -> None:
        self._rows = find_children(view, sources)
        self._reader = RowReader(view, set(np.unique(self._rows.fragments).tolist()))
        self._schema = pa.schema([view.schema.field(name) for name in columns])
        self._paths = [quote_parts((name,)) for name in columns]

    def read(self, sources: Ids) -> tuple[ChildRows, pa.RecordBatch]:
        """The children of some of these rows, by source row, in order, and their values."""
        known, sources = self._rows.sources, np.sort(sources)
        starts, ends = np.searchsorted(known, sources), np.searchsorted(known, sources, "right")
        counts = ends - starts
        places = np.repeat(ends - np.cumsum(counts), counts) + np.arange(counts.sum())
        rows = self._rows.take(places)
        values = self._reader.read(rows.row_ids, self._paths) if len(places) else self._no_values()
        made = [pa.array(rows.sources), pa.array(rows.numbers.astype(np.int32)), *values]
        names = [SOURCE_ROW_ID, CHILD_INDEX, *self._schema.names]
        return rows, pa.record_batch(made, names)

    def _no_values(self) -> list[pa.Array]:
        return [pa.array([], each.type) for each in self._schema]


class ViewChildren:
    """The children of some source rows, in the form in which the function makes them."""

    def __init__(self, view: LanceDataset, sources: RowSet, kinds: pa.Schema) -> None:
        self._view, self._sources, self._kinds = view, sources, kinds

    def __len__(self) -> int:
        return len(self._sources)

    def find(self, keys: Any, columns: Sequence[pa.Array], wanted: Any) -> list[FoundRows]:
        """Those of the wanted rows that are known."""
        rows = np.flatnonzero(wanted & self._sources.contains(keys))
        if not len(rows):
            return []
        rows = rows[np.argsort(keys[rows], kind="stable")]
        children = find_children(self._view, keys[rows])
        (field,) = self._kinds
        struct = field.type.value_type
        names = [quote_parts((each.name,)) for each in struct]
        items = [pa.array([], each.type) for each in struct]
        if len(children.row_ids):
            read = take(self._view, children.row_ids, names)
            items = [each.cast(kind.type) for each, kind in zip(read, struct, strict=True)]
        made = pa.StructArray.from_arrays(items, fields=list(struct))
        starts = np.searchsorted(children.sources, keys[rows])
        offsets = pa.array([*starts, len(children.sources)], pa.int32())
        values = pa.ListArray.from_arrays(offsets, made, type=field.type)
        batch = pa.record_batch([values], schema=self._kinds)
        return [FoundRows(rows, batch, np.zeros(len(rows), bool))]
