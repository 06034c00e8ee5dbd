"""Queries over rows that Spark evaluates: rows go into the JVM and come back as outputs.

Python workers read them before and write them after it. Each Spark partition is one unit.
"""

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from lance import LanceDataset
from msgspec import json

from penstock.jobs.engine.guard import SCHEMA
from penstock.jobs.engine.needed_rows import ROW_ID, scan_needed
from penstock.jobs.engine.waiting import wait_for_tasks
from penstock.jobs.refresh.context import SourceVersions, Work
from penstock.jobs.refresh.rows.kernel import RowsOrder, Unit, Worker
from penstock.jobs.spark.gate.checked_queries import pick
from penstock.jobs.spark.tasks import Engine, Tasks, is_second_try, task_number
from penstock.jobs.spark.types import cast_in, cast_out, quote, to_spark_schema
from penstock.lance.columns.fields import parse_path
from penstock.lance.diff.row_sets import Ids, decode_row_set, make_row_set
from penstock.lance.read.scans import ADDRESS, quote_parts
from penstock.lance.session.remote import open_planned
from penstock.lance.storage import files
from penstock.lance.storage.side_files import FOLDER, write_file
from penstock.lance.write.column_files import get_fragment
from penstock.model.views import Source

# Columns that carry row ids through Spark, whatever a source's columns are called.
ID, PLACE = "__penstock_row_id", "__penstock_row_address"


def start(engine: Engine, order: RowsOrder, dataset: LanceDataset, source: Source) -> Tasks:
    """Run the query over the units of an order."""

    def then(frame: Any) -> Any:
        outputs = [f"({c.expression}) AS {quote(c.name)}" for c in order.rows.columns]
        taken = pick(engine, frame, *outputs, ID, PLACE, where=order.rows.filter, name=source.name)
        return taken.mapInArrow(partial(_write, json.encode(order)), SCHEMA, profile=engine.profile)

    return _start(engine, order, dataset, source, then)


def match(engine: Engine, order: RowsOrder, source: SourceVersions, work: Work) -> Ids:
    """The ids of an order's rows that match the filter."""

    def then(frame: Any) -> Any:
        name = source.source.name
        taken = pick(engine, frame, ID, where=order.rows.filter, name=name)
        kernel = partial(_write_ids, json.encode(order))
        return taken.mapInArrow(kernel, SCHEMA, profile=engine.profile)

    running = _start(engine, order, source.dataset_now, source.source, then)
    wait_for_tasks(work.attempt, work.place, running)
    parts = [np.empty(0, np.int64)]
    for (unit,) in order.tasks:
        found = decode_row_set(files.read(work.place, _ids_path(order, unit)))
        lengths = found.ends - found.starts
        first = np.repeat(found.starts - np.cumsum(lengths) + lengths, lengths)
        parts.append(first + np.arange(lengths.sum()))
    return np.sort(np.concatenate(parts))


def _start(
    engine: Engine, order: RowsOrder, dataset: LanceDataset, source: Source, then: Any
) -> Tasks:
    names = dict.fromkeys(parse_path(path)[0] for path in source.reads)
    fields = [pa.field(name, dataset.schema.field(name).type) for name in names]
    schema = pa.schema([*fields, (ID, pa.int64()), (PLACE, pa.int64())])
    kernel = partial(_read, json.encode(order), tuple(names))
    return Tasks(engine, kernel, len(order.tasks), to_spark_schema(schema), then)


# In the workers --------------------------------------------------------------------------------


def _read(
    encoded: bytes, names: tuple[str, ...], numbers: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """The source rows, in Spark's form."""
    order = json.decode(encoded, type=RowsOrder)
    source = open_planned(order.source, order.source_version, order.job)
    columns = {str(n): quote_parts((name,)) for n, name in enumerate(names)}
    for batch in numbers:
        for number in batch.column(0).to_pylist():
            (unit,) = order.tasks[number]
            for needed in unit.needed:
                fragment = get_fragment(source, needed.fragment)
                for found in scan_needed(source, fragment, needed, columns, None):
                    arrays = [found.column(n) for n in columns]
                    places = [found.column(n).cast(pa.int64()) for n in (ROW_ID, ADDRESS)]
                    yield cast_in(pa.record_batch([*arrays, *places], [*names, ID, PLACE]))


def _write(encoded: bytes, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Write the rows that came back into files of the view."""
    order = json.decode(encoded, type=RowsOrder)
    number = task_number()
    worker = Worker(order, number, is_second=is_second_try())
    (unit,) = order.tasks[number]
    view = open_planned(order.view, order.view_version, order.job)
    yield from worker.guard(lambda: worker.write_unit(unit, _to_outputs(batches, view)))


def _to_outputs(batches: Iterator[pa.RecordBatch], view: LanceDataset) -> Iterator[pa.RecordBatch]:
    """Outputs with the view's types; columns only for functions stay as they are."""
    known = set(view.schema.names)
    for batch in batches:
        if not batch.num_rows:
            continue
        names = [name for name in batch.schema.names if name in known]
        schema = pa.schema([view.schema.field(name) for name in names])
        found = dict(zip(batch.schema.names, batch.columns, strict=True))
        found |= zip(names, cast_out(batch, schema).columns, strict=True)
        # As Lance gives them.
        places = [found.pop(name).cast(pa.uint64()) for name in (ID, PLACE)]
        yield pa.record_batch([*found.values(), *places], [*found, ROW_ID, ADDRESS])


def _write_ids(encoded: bytes, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    order = json.decode(encoded, type=RowsOrder)
    (unit,) = order.tasks[task_number()]
    rows = make_row_set(np.asarray(batch.column(0)) for batch in batches)
    write_file(order.view.place(), _ids_path(order, unit), rows.encode())
    yield from ()


def _ids_path(order: RowsOrder, unit: Unit) -> str:
    return f"{FOLDER}/{order.job}/ids-{unit.key}-{order.attempt}.rows"
