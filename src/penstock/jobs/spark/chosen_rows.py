"""Chosen rows of a Lance table for Spark SQL: few are part of the query, many are read by tasks.

What is below `divide` also runs in Python workers, which need penstock installed.
"""

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from msgspec import Struct, json

from penstock.errors import PenstockError
from penstock.jobs.spark.lance_source import MIN_ROWS, Scan, load_with, spark_schema, to_spark
from penstock.jobs.spark.tasks import Engine
from penstock.lance.columns.fields import show_path
from penstock.lance.diff.row_sets import Ids, decode_row_set, make_row_set, split_runs
from penstock.lance.read.scans import OFFSET_BITS, quote_parts, scan_expressions, scan_rows
from penstock.lance.session.remote import open_version
from penstock.lance.write.column_files import get_fragment

# Lance finds so many rows of a fragment by their ids faster than it scans.
MAX_LOOKED_UP = 1_000
# So much is read here and sent with the query, which takes less than to start tasks for it.
MAX_SENT_ROWS = 1_000
MAX_SENT_BYTES = 1 << 20


class ChosenRows(Struct, frozen=True):
    """Rows of a fragment: few by their ids, many by their offsets."""

    fragment: int
    ids: tuple[int, ...] = ()
    # An encoded set.
    offsets: bytes = b""


class ChosenOrder(Struct, frozen=True):
    """Everything that workers need; sent in the kernel's closure."""

    scan: Scan
    tasks: tuple[tuple[ChosenRows, ...], ...]


def load_chosen(engine: Engine, scan: Scan, ids: Ids, addresses: Ids) -> Any:
    """A frame like the table, with the rows of these ids and addresses only."""
    order = ChosenOrder(scan, divide(ids, addresses, engine.slots))
    if len(ids) <= MAX_SENT_ROWS and (rows := read_few(order)) is not None:
        return engine.spark.createDataFrame(rows, spark_schema(scan))
    kernel = partial(_read, json.encode(order))
    return load_with(engine, scan, kernel, len(order.tasks))


def read_few(order: ChosenOrder) -> pa.Table | None:
    """The rows at once; None if they are too large to be sent with a query."""
    batches: list[pa.RecordBatch] = []
    size = 0
    try:
        for chosen in (each for task in order.tasks for each in task):
            for batch in read_chosen(order.scan, chosen):
                size += batch.nbytes
                if size > MAX_SENT_BYTES:
                    return None
                batches.append(batch)
    except PenstockError:
        # A version may be gone by now: tasks find out as well, and their errors are understood.
        return None
    # A table without rows has no batch that knows its types.
    return pa.Table.from_batches(batches) if batches else None


def divide(ids: Ids, addresses: Ids, slots: int) -> tuple[tuple[ChosenRows, ...], ...]:
    """Tasks with about the same number of rows."""
    order = np.argsort(addresses, kind="stable")
    ids, addresses = ids[order], addresses[order]
    count = max(1, min(slots, -(-len(ids) // MIN_ROWS)))
    return tuple(
        tuple(_choose(ids[part], addresses[part]))
        for part in np.array_split(np.arange(len(ids)), count)
    )


def _choose(ids: Ids, addresses: Ids) -> Iterator[ChosenRows]:
    for run in split_runs(addresses >> 32):
        fragment = int(addresses[run][0] >> 32)
        if len(ids[run]) <= MAX_LOOKED_UP:
            yield ChosenRows(fragment, tuple(ids[run].tolist()))
        else:
            offsets = make_row_set([addresses[run] & OFFSET_BITS])
            yield ChosenRows(fragment, (), offsets.encode())


# In the workers ----------------------------------------------------------------------------------


def _read(encoded: bytes, numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    order = json.decode(encoded, type=ChosenOrder)
    for batch in numbers:
        for number in batch.column(0).to_pylist():
            for chosen in order.tasks[number]:
                yield from read_chosen(order.scan, chosen)


def read_chosen(scan: Scan, chosen: ChosenRows) -> Iterator[pa.RecordBatch]:
    """Rows of a fragment, in Spark's form."""
    dataset = open_version(scan.location, scan.version, scan.reader)
    fragment = get_fragment(dataset, chosen.fragment)
    if chosen.ids:
        columns = {name: quote_parts((name,)) for name in scan.columns}
        where = f"_rowid IN ({', '.join(map(str, chosen.ids))})"
        for batch in scan_expressions(dataset, fragment, columns, where, with_row_id=True):
            yield to_spark(scan, batch)
        return
    wanted = np.zeros(fragment.physical_rows, bool)
    found = decode_row_set(chosen.offsets)
    for start, end in zip(found.starts.tolist(), found.ends.tolist(), strict=True):
        wanted[start:end] = True
    paths = [show_path((name,)) for name in scan.columns]
    for batch in scan_rows(dataset, fragment, paths, wanted, with_row_id=True):
        names = [str(number) for number, _ in enumerate(paths)]
        rest = [name for name in batch.schema.names if name not in names]
        yield to_spark(scan, batch.select([*names, *rest]).rename_columns([*scan.columns, *rest]))
