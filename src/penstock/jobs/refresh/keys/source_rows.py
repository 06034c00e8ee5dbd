"""A source's rows while a refresh is planned: those that changed, and those with some keys. Blocks.

Columns are in Spark's form, named by their paths; the row id is `ROW_ID`.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.jobs.refresh.context import SourceVersions
from penstock.jobs.refresh.keys.key_sets import KeySet
from penstock.jobs.spark.types import cast_in, to_spark_arrow
from penstock.lance.diff.equal import as_ids, combine
from penstock.lance.diff.masks import Mask
from penstock.lance.diff.row_diff import Difference
from penstock.lance.diff.row_sets import Ids, sort_distinct
from penstock.lance.errors import translated
from penstock.lance.read.by_id import RowReader
from penstock.lance.read.scans import quote_path

ROW_ID, ADDRESS = "_rowid", "_rowaddr"
SCAN_ROWS = 262_144
# Lance finds so many rows by their ids faster than it scans.
MAX_LOOKED_UP = 1_000
# Rows of a join that are held in memory at once.
MAX_JOINED = 1_000_000

Columns = Mapping[str, pa.Array]


class TooManyRows(Exception):
    """More rows are joined with the changed ones than are worth finding."""


@dataclass(frozen=True, slots=True, eq=False)
class FoundRows:
    """Rows of a version, with the columns that were asked for."""

    ids: Ids
    # Fragment and offset in one number, as Lance has them.
    addresses: Ids
    columns: Columns

    def take(self, which: Mask) -> "FoundRows":
        kept = pa.array(which)
        columns = {name: pc.filter(column, kept) for name, column in self.columns.items()}
        return FoundRows(self.ids[which], self.addresses[which], columns)


class SourceRows:
    """One source in the version that the view is to follow, and what changed in it."""

    def __init__(self, source: SourceVersions, found: Difference | None) -> None:
        self.source = source.source
        self._now, self._then = source.dataset_now, source.dataset_then
        self._path_then = source.path_then
        self._found = found

    @property
    def changed(self) -> int:
        """How many rows were added, deleted or changed."""
        if self._found is None:
            return 0
        found = self._found
        return len(found.inserted.ids) + len(found.deleted.ids) + len(found.changed.ids)

    def read_changed(self, paths: Sequence[str]) -> tuple[Columns, Columns]:
        """The changed rows, as they are and as they were."""
        found = self._found
        assert found is not None
        assert self._then is not None
        fragments = np.union1d(found.inserted.fragments, found.changed.fragments).tolist()
        came = np.concatenate([found.inserted.ids, found.changed.ids])
        before = {fragment.fragment_id for fragment in self._then.get_fragments()}
        if not len(found.changed.ids):
            before &= set(np.unique(found.deleted.fragments).tolist())
        went = np.concatenate([found.deleted.ids, found.changed.ids])
        return (
            _read(RowReader(self._now, fragments), came, paths, str),
            _read(RowReader(self._then, before), went, paths, self._path_then),
        )

    def find(
        self,
        paths: Sequence[str],
        conditions: Sequence[tuple[Sequence[str], KeySet]],
        most: int | None = None,
    ) -> FoundRows:
        """The rows that have, in some columns each, one of the keys of each condition.

        Raises TooManyRows as soon as there are more than `most`.
        """
        asked = [*paths, *(path for columns, _ in conditions for path in columns)]
        read = tuple(path for path in dict.fromkeys(asked) if path != ROW_ID)
        parts: list[FoundRows] = []
        count = 0
        for batch in self._scan(read, _list_ids(conditions)):
            made = cast_in(batch.select([str(n) for n, _ in enumerate(read)]))
            columns = dict(zip(read, made.columns, strict=True))
            ids = as_ids(batch.column(ROW_ID))
            addresses = np.asarray(batch.column(ADDRESS)).astype(np.int64)
            known = {**columns, ROW_ID: pa.array(ids)}
            taken = np.ones(len(ids), bool)
            for names, keys in conditions:
                taken &= keys.contains([known[name] for name in names])
            parts.append(FoundRows(ids, addresses, columns).take(taken))
            count += len(parts[-1].ids)
            if most is not None and count > most:
                raise TooManyRows
        return _join(parts, read, [self._type(path) for path in read])

    def _scan(self, paths: Sequence[str], ids: Ids | None) -> Iterator[pa.RecordBatch]:
        where = self.source.filter
        if ids is not None:
            listed = f"{ROW_ID} IN ({', '.join(map(str, ids.tolist()))})"
            where = listed if where is None else f"{listed} AND ({where})"
        with translated():
            yield from self._now.scanner(
                columns={str(n): quote_path(path) for n, path in enumerate(paths)},
                filter=where,
                with_row_id=True,
                with_row_address=True,
                batch_size=SCAN_ROWS,
            ).to_batches()

    def _type(self, path: str) -> pa.DataType:
        with translated():
            scanner = self._now.scanner(columns={"0": quote_path(path)}, limit=0)
            return to_spark_arrow(scanner.projected_schema).field("0").type


def _read(
    reader: RowReader, ids: Ids, paths: Sequence[str], called: Callable[[str], str]
) -> Columns:
    stored = [path for path in paths if path != ROW_ID]
    arrays = reader.read(ids, [called(path) for path in stored])
    if arrays:
        arrays = cast_in(pa.record_batch(arrays, [str(n) for n, _ in enumerate(arrays)])).columns
    return {**dict(zip(stored, arrays, strict=True)), ROW_ID: pa.array(ids, pa.int64())}


def _list_ids(conditions: Sequence[tuple[Sequence[str], KeySet]]) -> Ids | None:
    """The row ids, if conditions name few of them."""
    for names, keys in conditions:
        if ROW_ID in names:
            ids = sort_distinct(np.asarray(keys.keys[list(names).index(ROW_ID)]))
            if 0 < len(ids) <= MAX_LOOKED_UP:
                return ids
    return None


def _join(
    parts: Sequence[FoundRows], paths: Sequence[str], types: Sequence[pa.DataType]
) -> FoundRows:
    none: Any = np.empty(0, np.int64)
    columns = {
        path: combine(pa.chunked_array([each.columns[path] for each in parts], kind))
        for path, kind in zip(paths, types, strict=True)
    }
    return FoundRows(
        np.concatenate([none, *(each.ids for each in parts)]),
        np.concatenate([none, *(each.addresses for each in parts)]),
        columns,
    )
