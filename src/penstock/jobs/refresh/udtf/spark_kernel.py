"""Partitions of a query that Spark computes: labels, digests, and calls of the function.

Spark gives rows to `label_kernel`, which tells the partition and the digest of each, and then, all
rows of a partition together, to `spark_udtf_kernel`. Both run in Python workers.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Struct, json

from penstock.jobs.engine.guard import guard
from penstock.jobs.refresh.udtf.making import GROUP_BYTES, PartitionMaker, UdtfOrder
from penstock.jobs.refresh.udtf.partitions import WHOLE, show_label
from penstock.jobs.spark.tasks import Kernel, is_second_try
from penstock.lance.diff.digests import digest_rows

# Columns beside those of the query, whatever these are called.
LABEL, DIGEST, UNIT = "__penstock_label", "__penstock_digest", "__penstock_unit"


class Labelling(Struct, frozen=True):
    """How rows are labelled."""

    # What the function reads, and perhaps the row's id: another value is another input.
    digested: tuple[str, ...]
    partition_by: str | None = None
    # The task of each partition; others' rows are dropped. None keeps all rows.
    units: dict[str, int] | None = None


def label_kernel(how: Labelling) -> Kernel:
    """Fills the columns LABEL, DIGEST and UNIT of rows."""
    return partial(_label, json.encode(how))


def _label(encoded: bytes, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    how = json.decode(encoded, type=Labelling)
    for batch in batches:
        labels = _label_rows(batch, how.partition_by)
        digested = [batch.column(name) for name in how.digested]
        digests = pa.array(digest_rows(digested, batch.num_rows).view(np.int64))
        units = pa.nulls(batch.num_rows, pa.int32())
        if how.units is not None:
            units = pa.array([how.units.get(each) for each in labels], pa.int32())
        made = {LABEL: pa.array(labels, pa.string()), DIGEST: digests, UNIT: units}
        kept = pa.record_batch(
            [
                made[name].cast(field.type) if name in made else batch.column(name)
                for name, field in zip(batch.schema.names, batch.schema, strict=True)
            ],
            batch.schema.names,
        )
        yield kept if how.units is None else pc.filter(kept, units.is_valid())


def _label_rows(batch: pa.RecordBatch, column: str | None) -> list[str]:
    if column is None:
        return [WHOLE] * batch.num_rows
    known: dict[Any, str] = {}
    found = []
    for value in batch.column(column).to_pylist():
        # NaN is no key, and 0.0 is the same one as -0.0.
        if isinstance(value, float | list | dict):
            found.append(show_label(value))
            continue
        if value not in known:
            known[value] = show_label(value)
        found.append(known[value])
    return found


def spark_udtf_kernel(order: UdtfOrder, inputs: Sequence[str]) -> Kernel:
    """Makes rows of the partitions that come, ordered by task and label."""
    return partial(_run, json.encode(order), tuple(inputs))


def _run(
    encoded: bytes, inputs: Sequence[str], batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    order = json.decode(encoded, type=UdtfOrder)
    runs = _Runs(batches)
    for number in runs.numbers():
        work = partial(_make, order, number, inputs, runs, is_second=is_second_try())
        yield from guard(work)


def _make(
    order: UdtfOrder, number: int, inputs: Sequence[str], runs: "_Runs", *, is_second: bool
) -> None:
    maker = PartitionMaker(order, number, is_second=is_second)
    maker.make(_gather(runs.take(number), inputs, maker))


class _Runs:
    """Rows in the order of their tasks, task by task."""

    def __init__(self, batches: Iterator[pa.RecordBatch]) -> None:
        self._batches: Iterator[pa.RecordBatch] = (each for each in batches if each.num_rows)

    def numbers(self) -> Iterator[int]:
        """The tasks that there are; what `take` left of one is dropped."""
        last = -1
        while (batch := next(self._batches, None)) is not None:
            number = batch.column(UNIT)[-1].as_py()
            if number == last:
                continue
            fresh = np.asarray(batch.column(UNIT)) != last
            batch = batch.slice(int(np.argmax(fresh)))
            last = batch.column(UNIT)[0].as_py()
            self._put_back(batch)
            yield last

    def take(self, number: int) -> Iterator[pa.RecordBatch]:
        """The rows of the task that comes next."""
        while (batch := next(self._batches, None)) is not None:
            count = int((np.asarray(batch.column(UNIT)) == number).sum())
            if count:
                yield batch.slice(0, count)
            if count < batch.num_rows:
                self._put_back(batch.slice(count))
                return

    def _put_back(self, batch: pa.RecordBatch) -> None:
        self._batches = chain([batch], self._batches)


def _gather(
    batches: Iterator[pa.RecordBatch], inputs: Sequence[str], maker: PartitionMaker
) -> Iterator[pa.RecordBatch]:
    """Whole partitions of rows in the order of their labels, some together."""
    parts: list[pa.RecordBatch] = []
    counts: dict[str, int] = {}
    size = 0
    for batch in batches:
        for label, rows in _split(batch):
            if size > GROUP_BYTES and label not in counts:
                yield _to_partitions(parts, counts, inputs, maker)
                parts, counts, size = [], {}, 0
            size += rows.nbytes
            parts.append(rows.select(list(inputs)))
            counts[label] = counts.get(label, 0) + rows.num_rows
            if size > maker.max_bytes:
                raise maker.too_large([*counts], [*counts.values()])
    if parts:
        yield _to_partitions(parts, counts, inputs, maker)


def _split(batch: pa.RecordBatch) -> Iterator[tuple[str, pa.RecordBatch]]:
    labels = batch.column(LABEL).to_pylist()
    start = 0
    for end in range(1, len(labels) + 1):
        if end == len(labels) or labels[end] != labels[start]:
            yield labels[start], batch.slice(start, end - start)
            start = end


def _to_partitions(
    parts: list[pa.RecordBatch],
    counts: Mapping[str, int],
    inputs: Sequence[str],
    maker: PartitionMaker,
) -> pa.RecordBatch:
    rows = pa.concat_batches(parts)
    fields = [pa.field(name, rows.schema.field(name).type) for name in inputs]
    made = pa.StructArray.from_arrays(rows.columns, fields=fields)
    return maker.to_batch([*counts], [*counts.values()], made)
