"""Call new functions of an altered view for some rows of its query, in a Python worker.

Each function's own `on_error` decides whether a row that fails is a reason not to alter the view.
All of it but `read_found` runs in the worker, which needs penstock installed.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from msgspec import Struct, json

from penstock.errors import FunctionFailed, Unavailable
from penstock.jobs.functions.children import made_schema
from penstock.jobs.functions.errors import RowFailed
from penstock.jobs.functions.load import ROW_BY_ROW
from penstock.jobs.functions.outcomes import Failure
from penstock.jobs.functions.rows import PARTITION_ROWS
from penstock.jobs.functions.task import FunctionOptions, FunctionTask
from penstock.jobs.refresh.chunks.kernel import VersionToOpen
from penstock.jobs.refresh.udtf.spark_kernel import LABEL
from penstock.jobs.spark.tasks import Kernel, is_second_try
from penstock.jobs.spark.types import cast_out
from penstock.lance.columns.schemas import decode_schema
from penstock.lance.read.samples import sample_expressions
from penstock.lance.session.remote import Location
from penstock.model.functions import Function

SCHEMA = "previewed string"
# A slow function is not called for all rows: somebody waits.
CALL_SECONDS = 10.0


class FunctionsOrder(Struct, frozen=True, kw_only=True):
    """Everything that the worker needs; sent in the kernel's closure."""

    job: str
    attempt: int
    view: Location
    functions: tuple[Function, ...]
    # Base64 of the schemas of the view, and of its columns that Spark's values are cast to before
    # a function reads them.
    schema: str
    cast: str
    rows: int
    is_partitions: bool = False
    # For Lance: what the functions read, by name, and, of whole partitions, the ids of their rows.
    source: VersionToOpen | None = None
    columns: dict[str, str] = {}
    where: str | None = None
    partitions: tuple[tuple[int, ...], ...] = ()


class FunctionsFound(Struct, frozen=True):
    """How many rows, or partitions, the functions were given, or why they can't be used."""

    rows: int = 0
    seconds: float = 0.0
    printed: tuple[str, ...] = ()
    failure: str = ""
    detail: str = ""


def lance_kernel(order: FunctionsOrder) -> Kernel:
    """Reads the rows by Lance; yields one row with everything as JSON."""
    return partial(_run_lance, json.encode(order))


def spark_kernel(order: FunctionsOrder) -> Kernel:
    """The same for rows that Spark gives, those of a partition together."""
    return partial(_run_spark, json.encode(order))


def read_found(rows: Sequence[Any]) -> FunctionsFound:
    """Read the worker's output."""
    if len(rows) != 1:
        raise Unavailable("the worker of the preview did not answer")
    return json.decode(rows[0][0], type=FunctionsFound)


def _run_lance(encoded: bytes, numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    order = json.decode(encoded, type=FunctionsOrder)
    for batch in numbers:
        for _ in range(batch.num_rows):
            yield _tell(order, lambda: _read(order))


def _run_spark(encoded: bytes, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    order = json.decode(encoded, type=FunctionsOrder)
    yield _tell(order, lambda: _take(order, list(batches)))


def _tell(order: FunctionsOrder, read: "Callable[[], pa.RecordBatch]") -> pa.RecordBatch:
    try:
        found = _call_all(order, read())
    except FunctionFailed as error:
        # A permanent error, so Spark must not retry it.
        found = FunctionsFound(failure=error.message, detail=error.detail)
    return pa.record_batch([[json.encode(found).decode()]], ["previewed"])


# Rows --------------------------------------------------------------------------------------------


def _read(order: FunctionsOrder) -> pa.RecordBatch:
    assert order.source is not None
    dataset = order.source.open(order.job)
    outputs = list(order.columns.items())
    if not order.is_partitions:
        return sample_expressions(dataset, outputs, order.where, order.rows)[1]
    parts = []
    for ids in order.partitions:
        where = f"_rowid IN ({', '.join(map(str, ids))})"
        sample, batch = sample_expressions(dataset, outputs, where, len(ids))
        parts.append(batch.take(pa.array(np.argsort([row.row_id for row in sample]))))
    if not parts:
        parts = [sample_expressions(dataset, outputs, None, 0)[1]]
    return _to_partitions(order, pa.concat_batches(parts), [len(ids) for ids in order.partitions])


def _take(order: FunctionsOrder, batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    """What came from Spark, with the types that a refresh gives to functions."""
    # Spark's workers get a batch without rows, or none at all, where there are no rows.
    found = pa.concat_batches(batches) if batches else _no_inputs(order)
    if order.is_partitions:
        labels = found.column(LABEL).to_pylist() if LABEL in found.schema.names else []
        starts = [n for n, label in enumerate(labels) if n == 0 or labels[n - 1] != label]
        return _to_partitions(order, found, np.diff([*starts, len(labels)]).tolist())
    cast = decode_schema(order.cast)
    kept = pa.schema([field for field in cast if field.name in found.schema.names])
    made = dict(zip(kept.names, cast_out(found, kept).columns, strict=True))
    columns = [made.get(name, found.column(name)) for name in found.schema.names]
    return pa.record_batch(columns, found.schema.names)


def _no_inputs(order: FunctionsOrder) -> pa.RecordBatch:
    names = dict.fromkeys(name for each in order.functions for name in each.inputs)
    return pa.record_batch([pa.nulls(0) for _ in names], list(names))


def _to_partitions(
    order: FunctionsOrder, rows: pa.RecordBatch, counts: Sequence[int]
) -> pa.RecordBatch:
    """Partitions in the form that a function of partitions takes: each as a list of its rows."""
    inputs = list(order.functions[0].inputs)
    fields = [pa.field(name, rows.schema.field(name).type) for name in inputs]
    structs = pa.StructArray.from_arrays([rows.column(name) for name in inputs], fields=fields)
    offsets = np.concatenate([[0], np.cumsum(counts, dtype=np.int64)])
    lists = pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), structs)
    return pa.record_batch([lists], [PARTITION_ROWS])


# Calls -------------------------------------------------------------------------------------------


def _call_all(order: FunctionsOrder, batch: pa.RecordBatch) -> FunctionsFound:
    started, printed = time.perf_counter(), list[str]()
    given = [_call(order, function, batch, printed) for function in order.functions]
    return FunctionsFound(
        min(given, default=0), round(time.perf_counter() - started, 4), tuple(printed)
    )


def _call(
    order: FunctionsOrder, function: Function, batch: pa.RecordBatch, printed: list[str]
) -> int:
    """Call a function for the rows, as a refresh would; returns how many it was given."""
    names = [PARTITION_ROWS] if order.is_partitions else list(function.inputs)
    rows = batch.select(names)
    task = FunctionTask(
        order.view.place(),
        order.job,
        order.attempt,
        function,
        _kinds(order, function),
        FunctionOptions(),
        # A second try may follow a function that killed its process.
        isolated=is_second_try(),
    )
    failures: list[Failure] = []
    done, started = 0, time.perf_counter()
    try:
        while done < rows.num_rows and time.perf_counter() - started < CALL_SECONDS:
            size = 1 if function.kind in ROW_BY_ROW else task.size.rows
            part = rows.slice(done, size)
            values = task.policy.compute(part)
            failures += [failure for failure, _ in values.failures.values()]
            done += part.num_rows
    except RowFailed as error:
        note = f" ({error.note})" if error.note else ""
        raise _refuse(order, function, error.failure, f"failed{note}") from error
    finally:
        printed += task.output.take()
        task.close()
    if done and len(failures) == done:
        raise _refuse(order, function, failures[0], f"failed on all {done} of them, at first")
    return done


def _kinds(order: FunctionsOrder, function: Function) -> pa.Schema:
    """The types of what a function makes, as its callers take them."""
    schema = decode_schema(order.schema)
    fields = [
        pa.field(each.column, schema.field(each.column).type, each.nullable)
        for each in function.outputs
    ]
    if function.form == "udtf_spec":
        return made_schema(fields)
    return pa.schema([pa.field(field.name, field.type) for field in fields])


def _refuse(
    order: FunctionsOrder, function: Function, failure: Failure, what: str
) -> FunctionFailed:
    what_for = "partitions" if order.is_partitions else "rows"
    made = ", ".join(each.column for each in function.outputs)
    return FunctionFailed(
        f"function {function.name} (version {function.version}), which makes {made}, was given "
        f"some {what_for} of the query and {what}: {failure.text}",
        detail=failure.traceback,
    )
