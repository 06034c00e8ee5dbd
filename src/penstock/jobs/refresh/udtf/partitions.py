"""Partition a source's rows: by the values of a column, or by the lists of a vector index.

A partition is identified by its label: JSON of the value, or the number of the list. Everything
here blocks.
"""

import base64
import hashlib
import importlib
import math
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from lance import LanceDataset
from msgspec import Struct, json

from penstock.errors import InvalidRequest
from penstock.lance.diff.equal import as_ids
from penstock.lance.diff.row_diff import scan_all
from penstock.lance.diff.row_sets import Ids, RowPlaces, is_among, sort_distinct
from penstock.lance.errors import translated
from penstock.lance.read.scans import ADDRESS, BATCH_ROWS, OFFSET_BITS

# Rows that an index does not have are a partition of their own.
UNINDEXED = "unindexed"
# The only partition of a view without partitioning.
WHOLE = ""


class Partitioning(Struct, frozen=True):
    """How rows are partitioned: by an expression, by the index of a column, or not at all."""

    where: str | None = None
    expression: str | None = None
    indexed: str | None = None


class Division(NamedTuple):
    """Rows, the number of each one's partition, and the partitions' labels."""

    rows: RowPlaces
    numbers: Ids
    labels: list[str]

    def labels_of(self, ids: Ids) -> set[str]:
        """The partitions that have one of these rows, which are sorted."""
        found = sort_distinct(self.numbers[is_among(self.rows.ids, ids)])
        return {self.labels[number] for number in found.tolist()}


def divide(dataset: LanceDataset, how: Partitioning, *, is_strict: bool = True) -> Division:
    """Partition the rows of a version that match the filter; strict: an index must exist."""
    if how.expression is not None:
        return _by_value(dataset, how)
    rows = scan_all(dataset) if how.where is None else _scan(dataset, how.where)
    if how.indexed is not None:
        return _by_list(dataset, how.indexed, rows, is_strict=is_strict)
    return _number(rows, [WHOLE] * bool(len(rows.ids)), None)


def number_of(label: str) -> int:
    """A number for a partition that is the same at every refresh, of 62 bits."""
    return int.from_bytes(hashlib.sha256(label.encode()).digest()[:8], "big") >> 2


def moved(now: Division, then: Division) -> Ids:
    """The rows that both have, but in other partitions; sorted."""
    common = now.rows.ids[is_among(now.rows.ids, then.rows.ids)]
    known = {label: number for number, label in enumerate(now.labels)}
    old = np.array([known.get(label, -1) for label in then.labels], np.int64)
    here = now.numbers[np.searchsorted(now.rows.ids, common)]
    there = then.numbers[np.searchsorted(then.rows.ids, common)]
    return common[here != old[there]] if len(common) else common


def _by_value(dataset: LanceDataset, how: Partitioning) -> Division:
    ids, places, values = [np.empty(0, np.int64)], [np.empty(0, np.uint64)], []
    with translated():
        scanner = dataset.scanner(
            columns={"p": how.expression or ""},
            filter=how.where,
            with_row_id=True,
            with_row_address=True,
            batch_size=BATCH_ROWS,
        )
        for batch in scanner.to_batches():
            ids.append(as_ids(batch.column("_rowid")))
            places.append(np.asarray(batch.column(ADDRESS)))
            values.append(_widen(batch.column("p")))
    rows = _to_rows(np.concatenate(ids), np.concatenate(places))
    if not values:
        return _number(rows, [], None)
    # In chunks, because an array holds at most 2 GB of text; all share one dictionary.
    coded = pa.chunked_array(values).dictionary_encode(null_encoding="encode").chunks
    labels = [show_label(value) for value in coded[0].dictionary.to_pylist()]
    numbers = np.concatenate([np.asarray(each.indices) for each in coded])
    return _number(rows, labels, numbers.astype(np.int64))


def _widen(values: Any) -> Any:
    """Plain values, in a type that holds any number of them."""
    kind = values.type.value_type if pa.types.is_dictionary(values.type) else values.type
    wide = {pa.string(): pa.large_string(), pa.binary(): pa.large_binary()}
    return values.cast(wide.get(kind, kind))


def _by_list(dataset: LanceDataset, column: str, rows: RowPlaces, *, is_strict: bool) -> Division:
    lists = _read_lists(dataset, column)
    if lists is None and is_strict:
        raise InvalidRequest(
            f"column {column} has no vector index with lists any more, and the view is "
            f"partitioned by it",
            detail="create the index again, or the view with another partitioning",
        )
    covered, parts = lists or (set(), [])
    numbers = np.full(len(rows.ids), len(parts), np.int64)
    # Rows that moved to another fragment since are in the index, but outdated.
    is_covered = np.isin(rows.fragments, list(covered))
    order = np.argsort(rows.ids, kind="stable")
    for number, ids in enumerate(parts if len(order) else ()):
        at = np.minimum(np.searchsorted(rows.ids, ids, sorter=order), len(order) - 1)
        places = order[at][rows.ids[order[at]] == ids]
        numbers[places[is_covered[places]]] = number
    return _number(rows, [*map(str, range(len(parts))), UNINDEXED], numbers)


def _read_lists(dataset: LanceDataset, column: str) -> tuple[set[int], list[Ids]] | None:
    """The fragments that the column's index covers, and the row ids of its lists."""
    with translated():
        found = [
            each
            for each in dataset.describe_indices()
            if each.field_names == [column] and each.index_type.startswith("IVF")
        ]
    if not found:
        return None
    reader: Any = importlib.import_module("lance.dataset")
    with translated():
        index = reader.VectorIndexReader(dataset, found[0].name)
        parts = [
            as_ids(index.read_partition(number)["_rowid"])
            for number in range(index.num_partitions())
        ]
    covered = {int(id) for segment in found[0].segments for id in segment.fragment_ids}
    return covered, parts


def _scan(dataset: LanceDataset, where: str) -> RowPlaces:
    ids, places = [np.empty(0, np.int64)], [np.empty(0, np.uint64)]
    with translated():
        scanner = dataset.scanner(columns=[], filter=where, with_row_id=True, with_row_address=True)
        for batch in scanner.to_batches():
            ids.append(as_ids(batch.column("_rowid")))
            places.append(np.asarray(batch.column(ADDRESS)))
    return _to_rows(np.concatenate(ids), np.concatenate(places))


def _to_rows(ids: Ids, addresses: Any) -> RowPlaces:
    fragments = (addresses >> np.uint64(32)).astype(np.int64)
    return RowPlaces(ids, fragments, (addresses & np.uint64(OFFSET_BITS)).astype(np.int64))


def _number(rows: RowPlaces, labels: list[str], numbers: Ids | None) -> Division:
    """Rows by id, with partitions numbered; partitions without rows are dropped."""
    if numbers is None:
        numbers = np.zeros(len(rows.ids), np.int64)
    names = sorted({labels[number] for number in sort_distinct(numbers).tolist()})
    places = {name: place for place, name in enumerate(names)}
    again = np.array([places.get(label, -1) for label in labels], np.int64)
    order = np.argsort(rows.ids, kind="stable")
    return Division(rows.take(order), again[numbers[order]] if len(order) else numbers, names)


def show_label(value: Any) -> str:
    """The label of the partition of a value."""
    if isinstance(value, float) and not math.isfinite(value):
        # JSON has no words for these, and they are not NULL.
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, bytes):
        value = base64.b64encode(value).decode()
    return json.encode(value, enc_hook=str, order="deterministic").decode()
