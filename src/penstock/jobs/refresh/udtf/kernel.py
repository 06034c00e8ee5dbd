"""Read partitions by Lance in a Python worker, and have a function make rows of them."""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from msgspec import json

from penstock.jobs.engine.guard import guard
from penstock.jobs.engine.row_ranges import divide_some
from penstock.jobs.refresh.chunks.children import ROW_ID
from penstock.jobs.refresh.udtf.making import GROUP_BYTES, PartitionMaker, UdtfOrder
from penstock.jobs.refresh.udtf.partitions import divide
from penstock.jobs.spark.tasks import Kernel, is_second_try
from penstock.lance.diff.equal import as_ids
from penstock.lance.diff.row_sets import RowPlaces
from penstock.lance.read.scans import scan_columns
from penstock.lance.write.column_files import get_fragment

FIRST_ROWS, MOST_ROWS = 4096, 1_048_576


def udtf_kernel(order: UdtfOrder, numbers: Sequence[int]) -> Kernel:
    """Runs in each worker for these tasks."""
    return partial(_run, json.encode(order), tuple(numbers))


def _run(
    encoded: bytes, numbers: Sequence[int], items: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    order = json.decode(encoded, type=UdtfOrder)
    for batch in items:
        for item in batch.column(0).to_pylist():
            yield from guard(partial(_make, order, numbers[item], is_second=is_second_try()))


def _make(order: UdtfOrder, number: int, *, is_second: bool) -> None:
    maker = PartitionMaker(order, number, is_second=is_second)
    maker.make(_Reader(order, number, maker).read())


class _Group(NamedTuple):
    """Partitions that are read together, and all their rows, by partition and id."""

    labels: list[str]
    counts: list[int]
    rows: RowPlaces


class _Reader:
    """Reads the partitions of a task."""

    def __init__(self, order: UdtfOrder, number: int, maker: PartitionMaker) -> None:
        assert order.source is not None
        self._order, self._number, self._maker = order, number, maker
        self._source = order.source.open(order.job)
        self._group_rows = FIRST_ROWS

    def read(self) -> Iterator[pa.RecordBatch]:
        """Partitions, each as a list of its rows."""
        for group in self._groups():
            yield self._read_group(group)

    def _groups(self) -> Iterator[_Group]:
        divided = divide(self._source, self._order.how)
        known = {label: number for number, label in enumerate(divided.labels)}
        numbers = [known[label] for label in self._order.tasks[self._number]]
        order = np.lexsort((divided.rows.ids, divided.numbers))
        starts = np.searchsorted(divided.numbers[order], np.arange(len(divided.labels) + 1))
        at = 0
        while at < len(numbers):
            taken: list[Any] = []
            counts: list[int] = []
            while at < len(numbers) and (not taken or sum(counts) < self._group_rows):
                start, end = starts[numbers[at]], starts[numbers[at] + 1]
                if taken and sum(counts) + end - start > self._group_rows:
                    break
                taken.append(order[start:end])
                counts.append(int(end - start))
                at += 1
            labels = [divided.labels[n] for n in numbers[at - len(taken) : at]]
            yield _Group(labels, counts, divided.rows.take(np.concatenate(taken)))

    def _read_group(self, group: _Group) -> pa.RecordBatch:
        found = pa.concat_batches(self._scan(group))
        self._group_rows = max(1, GROUP_BYTES * found.num_rows // max(1, found.nbytes))
        self._group_rows = min(self._group_rows, MOST_ROWS)
        # The rows came in the order of their places.
        back = np.argsort(as_ids(found.column(ROW_ID)))
        wanted = np.argsort(np.argsort(group.rows.ids))
        found = found.take(pa.array(back[wanted]))
        names = list(self._order.columns)
        rows = pa.StructArray.from_arrays(
            found.columns[: len(names)], fields=_name(found.schema, names)
        )
        return self._maker.to_batch(group.labels, group.counts, rows)

    def _scan(self, group: _Group) -> list[pa.RecordBatch]:
        """The rows of a group, unordered; no more than there is room for."""
        columns = {str(n): each for n, each in enumerate(self._order.columns.values())}
        found: list[pa.RecordBatch] = []
        size = 0
        ((*units,),) = divide_some(group.rows.fragments, group.rows.offsets, 1)
        for unit in units:
            fragment = get_fragment(self._source, unit.fragment)
            wanted = unit.wanted(fragment.physical_rows)
            for batch in scan_columns(
                self._source, fragment, columns, wanted=wanted, with_row_id=True
            ):
                size += batch.nbytes
                if size > self._maker.max_bytes:
                    raise self._maker.too_large(group.labels, group.counts)
                found.append(batch.select([*columns, ROW_ID]))
        return found


def _name(schema: pa.Schema, names: Sequence[str]) -> list[pa.Field]:
    return [pa.field(name, schema.field(n).type) for n, name in enumerate(names)]
