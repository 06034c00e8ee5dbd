"""Rows that a query gives on Spark, written into files of a view where they come out.

What is below `write_kernel` runs in Python workers, which need penstock installed.
"""

from collections.abc import Iterator
from functools import partial
from typing import Any

import pyarrow as pa
from msgspec import Struct, json

from penstock.errors import PenstockError
from penstock.jobs.engine.attempt import PASSING
from penstock.jobs.engine.checkpoints import is_stopped
from penstock.jobs.refresh.groups.key_sets import KeySet
from penstock.jobs.refresh.row_files import RowFiles
from penstock.jobs.spark.tasks import Kernel
from penstock.jobs.spark.types import cast_out
from penstock.lance.session.remote import Location, open_planned

SCHEMA = "fragments string, rows bigint, known bigint, error string, detail string"


class WriteOrder(Struct, frozen=True, kw_only=True):
    """All that workers need to know; it travels to them in the function itself."""

    job: str
    attempt: int
    view: Location
    version: int
    columns: tuple[str, ...]
    max_rows: int | None = None
    # Groups that the view has, by these columns: their rows are counted apart.
    keys: tuple[str, ...] = ()
    known: bytes | None = None


class Written(Struct, frozen=True):
    """What a task did, or why its rows cannot be written."""

    fragments: tuple[str, ...] = ()
    rows: int = 0
    known: int = 0
    error: str | None = None
    detail: str | None = None


def write_kernel(order: WriteOrder) -> Kernel:
    """What Spark runs in each worker; yields one row."""
    return partial(_write, json.encode(order))


def _write(encoded: bytes, batches: "Iterator[pa.RecordBatch]") -> "Iterator[pa.RecordBatch]":
    order = json.decode(encoded, type=WriteOrder)
    try:
        found = write_rows(order, batches)
    except PASSING:
        # Spark tries the task again, perhaps elsewhere.
        raise
    except PenstockError as error:
        # An error of the values comes back every time, so Spark must not hear of it.
        found = Written(error=error.message, detail=error.detail)
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


def write_rows(order: WriteOrder, batches: "Iterator[pa.RecordBatch]") -> Written:
    """Write all rows of a task."""
    view = open_planned(order.view, order.version, order.job)
    place = order.view.place()
    files = RowFiles(view, order.view, order.columns, order.job, order.attempt, order.max_rows)
    # Files take types only; whether there may be nulls is said by the table.
    wanted = pa.schema(
        [field.with_nullable(view.schema.field(field.name).nullable) for field in files.schema]
    )
    groups = None if order.known is None else KeySet.decode(order.known)
    rows = known = 0
    for batch in batches:
        if is_stopped(place, order.job, order.attempt):
            break
        if not batch.num_rows:
            continue
        made = cast_out(batch, wanted)
        files.write(pa.record_batch(made.columns, schema=files.schema))
        rows += made.num_rows
        if groups is not None:
            known += int(groups.contains([batch.column(name) for name in order.keys]).sum())
    return Written(files.close(), rows, known)
