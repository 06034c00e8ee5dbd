"""Chunkers over queries that Spark evaluates: rows go through the JVM to the function.

Python workers read the rows before it and write their children after it.
"""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from lance import LanceDataset
from msgspec import json

from penstock.jobs.engine.guard import SCHEMA, guard
from penstock.jobs.engine.row_ranges import RowRange, divide_some
from penstock.jobs.refresh.chunks.children import ROW_ID
from penstock.jobs.refresh.chunks.kernel import ChunkOrder, make_chunks
from penstock.jobs.refresh.context import SourceVersions
from penstock.jobs.refresh.rows.spark_rows import ID, PLACE
from penstock.jobs.spark.gate.checked_queries import pick
from penstock.jobs.spark.tasks import Engine, Tasks, is_second_try, task_number
from penstock.jobs.spark.types import cast_in, cast_out, quote, to_spark_schema
from penstock.lance.columns.fields import parse_path
from penstock.lance.read.scans import ADDRESS, quote_parts, scan_columns
from penstock.lance.write.column_files import get_fragment


def start(
    engine: Engine, order: ChunkOrder, numbers: Sequence[int], source: SourceVersions
) -> Tasks:
    """Run the query and the function over the rows of these tasks."""
    names = tuple(dict.fromkeys(parse_path(path)[0] for path in source.source.reads))
    fields = [pa.field(name, source.dataset_now.schema.field(name).type) for name in names]
    schema = pa.schema([*fields, (ID, pa.int64()), (PLACE, pa.int64())])
    encoded = json.encode(order)

    def then(frame: Any) -> Any:
        outputs = [f"({text}) AS {quote(name)}" for name, text in order.columns.items()]
        name = source.source.name
        taken = pick(engine, frame, *outputs, ID, PLACE, where=order.where, name=name)
        if order.limit is not None:
            taken = taken.repartition(1).sortWithinPartitions(ID)
        kernel = partial(_write, encoded, tuple(numbers))
        return taken.mapInArrow(kernel, SCHEMA, profile=engine.profile)

    kernel = partial(_read, encoded, tuple(numbers), names)
    return Tasks(engine, kernel, len(numbers), to_spark_schema(schema), then)


def _read(
    encoded: bytes, tasks: Sequence[int], names: Sequence[str], numbers: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """The source rows, in Spark's form."""
    order = json.decode(encoded, type=ChunkOrder)
    source = order.source.open(order.job)
    columns = {str(n): quote_parts((name,)) for n, name in enumerate(names)}
    for batch in numbers:
        for number in batch.column(0).to_pylist():
            for unit in _units(order, tasks[number]):
                for found in _scan(source, unit, columns):
                    arrays = [found.column(n) for n in columns]
                    places = [found.column(n).cast(pa.int64()) for n in (ROW_ID, ADDRESS)]
                    yield cast_in(pa.record_batch([*arrays, *places], [*names, ID, PLACE]))


def _units(order: ChunkOrder, number: int) -> tuple[RowRange, ...]:
    if order.limit is None:
        return order.tasks[number].call
    fragments = np.frombuffer(order.limit.fragments, np.int64)
    offsets = np.frombuffer(order.limit.offsets, np.int64)
    (units,) = divide_some(fragments, offsets, 1)
    return units


def _scan(
    source: LanceDataset, unit: RowRange, columns: dict[str, str]
) -> Iterator[pa.RecordBatch]:
    fragment = get_fragment(source, unit.fragment)
    wanted = unit.wanted(fragment.physical_rows)
    return scan_columns(source, fragment, columns, wanted=wanted, with_row_id=True)


def _write(
    encoded: bytes, numbers: Sequence[int], batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Write the children of rows that came back from Spark to files."""
    order = json.decode(encoded, type=ChunkOrder)
    rows, number = _to_rows(batches, order), numbers[task_number()]
    yield from guard(partial(make_chunks, order, number, rows, is_second=is_second_try()))


def _to_rows(batches: Iterator[pa.RecordBatch], order: ChunkOrder) -> Iterator[pa.RecordBatch]:
    """Rows with the view's types for inherited columns; inputs keep Spark's."""
    view = order.view.open(order.job)
    schema = pa.schema([view.schema.field(name) for name in order.inherited])
    names = {ID: ROW_ID, PLACE: ADDRESS}
    for batch in batches:
        if batch.num_rows:
            cast = dict(zip(schema.names, cast_out(batch, schema).columns, strict=True))
            yield pa.record_batch(
                [cast.get(name, batch.column(name)) for name in batch.schema.names],
                [names.get(name, name) for name in batch.schema.names],
            )
