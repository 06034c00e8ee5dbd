"""A view's query on Spark: over frames for its sources, into files of the view."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from msgspec import json

from penstock.errors import SchemaMismatch
from penstock.jobs.engine.waiting import wait_for
from penstock.jobs.refresh.context import Work
from penstock.jobs.refresh.groups.key_sets import KeySet
from penstock.jobs.refresh.writing import SCHEMA, WriteOrder, Written, write_kernel
from penstock.jobs.spark.gate.door import query
from penstock.jobs.spark.tasks import Engine, Running, explain, rows_of
from penstock.lance.columns.schemas import decode_schema
from penstock.model.views import SYSTEM_COLUMNS


def run_query(
    work: Work,
    engine: Engine,
    frames: Mapping[str, Any],
    keys: tuple[str, ...] = (),
    known: KeySet | None = None,
) -> list[Written]:
    """Compute the view's query over these tables and write what comes out."""
    order = WriteOrder(
        job=work.attempt.job,
        attempt=work.attempt.number,
        view=work.location,
        version=work.view.version,
        columns=output_columns(work),
        max_rows=work.spec.max_rows_per_fragment,
        keys=keys,
        known=None if known is None else known.encode(),
    )
    try:
        frame = _spell(query(engine, work.definition.sql, frames), order.columns)
        check_outputs(frame.columns, order.columns)
        running = Running(engine, rows_of(frame.mapInArrow(write_kernel(order), SCHEMA)))
    # Spark has no common error for a query that it does not understand.
    except Exception as error:
        raise explain(error) from error
    # Whoever writes stops when told; those who compute can only be ended.
    rows = wait_for(work.attempt, work.place, running, patience=0)
    found = [
        Written(json.decode(row.fragments, type=tuple[str, ...]), row.rows, row.known)
        for row in rows
    ]
    for row in rows:
        if row.error is not None:
            raise SchemaMismatch(row.error, detail=row.detail)
    return found


def choose_engine(work: Work) -> Engine:
    """The engine, with no more tasks at once than were asked for."""
    engine = work.get_engine()
    most = work.spec.concurrency or engine.slots
    return replace(engine, slots=max(1, min(engine.slots, most)))


def output_columns(work: Work) -> tuple[str, ...]:
    """The view's columns that its query gives: neither the system's nor any that came later."""
    names = decode_schema(work.definition.schema).names
    return tuple(name for name in names if name not in SYSTEM_COLUMNS)


def _spell(frame: Any, wanted: tuple[str, ...]) -> Any:
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
