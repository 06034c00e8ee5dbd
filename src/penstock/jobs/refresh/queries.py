"""Run a view's query on Spark, and write its rows into files of the view.

What is below `write_kernel` runs in Python workers, which need penstock installed.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import pyarrow as pa
from msgspec import Struct, json

from penstock.errors import PenstockError, SchemaMismatch
from penstock.jobs.engine.attempt import PASSING
from penstock.jobs.engine.checkpoints import is_stopped
from penstock.jobs.engine.waiting import wait_for
from penstock.jobs.refresh.context import Work
from penstock.jobs.refresh.frames import get_sql
from penstock.jobs.refresh.keys.key_sets import KeySet
from penstock.jobs.refresh.row_files import RowFiles
from penstock.jobs.spark.gate.checked_queries import query
from penstock.jobs.spark.tasks import Engine, Kernel, SparkWork, explain, rows_of
from penstock.jobs.spark.types import cast_out
from penstock.lance.columns.schemas import decode_schema
from penstock.lance.session.remote import Location, open_planned
from penstock.model.views import SYSTEM_COLUMNS

SCHEMA = "fragments string, rows bigint, known bigint, error string, detail string"


class WriteOrder(Struct, frozen=True, kw_only=True):
    """Everything that workers need; sent in the kernel's closure."""

    job: str
    attempt: int
    view: Location
    version: int
    columns: tuple[str, ...]
    max_rows: int | None = None
    # Only rows with these keys are written; those that the view has are counted separately.
    keys: tuple[str, ...] = ()
    touched: bytes | None = None
    known: bytes | None = None


class WriteResult(Struct, frozen=True):
    """What a task wrote, or why its rows cannot be written."""

    fragments: tuple[str, ...] = ()
    rows: int = 0
    known: int = 0
    error: str | None = None
    detail: str | None = None


def run_query(
    work: Work,
    engine: Engine,
    frames: Mapping[str, Any],
    touched: KeySet | None = None,
    known: KeySet | None = None,
) -> list[WriteResult]:
    """Compute the view's query over these tables and write the result, or that of some keys."""
    keys = work.definition.keys
    order = WriteOrder(
        job=work.attempt.job,
        attempt=work.attempt.number,
        view=work.location,
        version=work.view.version,
        columns=output_columns(work),
        max_rows=work.spec.max_rows_per_fragment,
        keys=() if keys is None else keys.columns,
        touched=None if touched is None else touched.encode(),
        known=None if known is None else known.encode(),
    )
    try:
        frame = spell_columns(query(engine, get_sql(work.definition), frames), order.columns)
        check_outputs(frame.columns, order.columns)
        running = SparkWork(engine, rows_of(frame.mapInArrow(write_kernel(order), SCHEMA)))
    # Spark has no common error for a query that it does not understand.
    except Exception as error:
        raise explain(error) from error
    # Writers stop when asked to; a computation can only be killed.
    rows = wait_for(work.attempt, work.place, running, patience=0)
    found = [
        WriteResult(json.decode(row.fragments, type=tuple[str, ...]), row.rows, row.known)
        for row in rows
    ]
    for row in rows:
        if row.error is not None:
            raise SchemaMismatch(row.error, detail=row.detail)
    return found


def choose_engine(work: Work) -> Engine:
    """The engine, with no more concurrent tasks than requested."""
    engine = work.get_engine()
    most = work.spec.concurrency or engine.slots
    return replace(engine, slots=max(1, min(engine.slots, most)))


def output_columns(work: Work) -> tuple[str, ...]:
    """The view's columns that its query gives: without later additions, but with row ids."""
    names, keys = decode_schema(work.definition.schema).names, work.definition.keys
    given = () if keys is None else keys.row_ids
    return tuple(name for name in names if name in given or name not in SYSTEM_COLUMNS)


def spell_columns(frame: Any, wanted: tuple[str, ...]) -> Any:
    """The frame with the view's names where Spark spells them in another case."""
    names = {name.lower(): name for name in wanted}
    return frame.toDF(*(names.get(name.lower(), name) for name in frame.columns))


def check_outputs(given: list[str], wanted: tuple[str, ...]) -> None:
    if missing := [name for name in wanted if given.count(name) != 1]:
        raise SchemaMismatch(
            f"the query gives no column {missing[0]}, or more than one; it gives "
            + ", ".join(given),
            detail="give each output of the query the name of one of the view's columns",
        )


# In the workers ----------------------------------------------------------------------------------


def write_kernel(order: WriteOrder) -> Kernel:
    """Runs in each worker; yields one row."""
    return partial(_write, json.encode(order))


def _write(encoded: bytes, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    order = json.decode(encoded, type=WriteOrder)
    try:
        found = write_rows(order, batches)
    except PASSING:
        # Spark tries the task again, perhaps elsewhere.
        raise
    except PenstockError as error:
        # An error of the values comes back every time, so Spark must not retry it.
        found = WriteResult(error=error.message, detail=error.detail)
    row: dict[str, Any] = {
        "fragments": json.encode(found.fragments).decode(),
        "rows": found.rows,
        "known": found.known,
        "error": found.error,
        "detail": found.detail,
    }
    kinds = [pa.string(), pa.int64(), pa.int64(), pa.string(), pa.string()]
    arrays = [pa.array([value], kind) for value, kind in zip(row.values(), kinds, strict=True)]
    yield pa.record_batch(arrays, list(row))


def write_rows(order: WriteOrder, batches: Iterator[pa.RecordBatch]) -> WriteResult:
    """Write all rows of a task."""
    view = open_planned(order.view, order.version, order.job)
    place = order.view.place()
    files = RowFiles(view, order.view, order.columns, order.job, order.attempt, order.max_rows)
    # Files only have types; whether there may be nulls is up to the table.
    wanted = pa.schema(
        [field.with_nullable(view.schema.field(field.name).nullable) for field in files.schema]
    )
    touched = None if order.touched is None else KeySet.decode(order.touched)
    had = None if order.known is None else KeySet.decode(order.known)
    rows = known = 0
    for batch in batches:
        if is_stopped(place, order.job, order.attempt):
            break
        if touched is not None:
            keys = [batch.column(name) for name in order.keys]
            batch = batch.filter(pa.array(touched.contains(keys)))
        if not batch.num_rows:
            continue
        made = cast_out(batch, wanted)
        files.write(pa.record_batch(made.columns, schema=files.schema))
        rows += made.num_rows
        if had is not None:
            known += int(had.contains([batch.column(name) for name in order.keys]).sum())
    return WriteResult(files.close(), rows, known)
