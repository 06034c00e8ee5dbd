"""Preview the new functions of an altered view: give them some rows of its query, write nothing.

A function of partitions is only given whole ones: it may rightly fail on a part of one.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
from msgspec import Struct, structs

from penstock.jobs.engine.attempt import Attempt
from penstock.jobs.engine.waiting import wait_for
from penstock.jobs.preview.functions_kernel import (
    SCHEMA,
    FunctionsFound,
    FunctionsOrder,
    lance_kernel,
    read_found,
    spark_kernel,
)
from penstock.jobs.refresh.altering.changes import list_new_functions
from penstock.jobs.refresh.chunks.kernel import VersionToOpen
from penstock.jobs.refresh.context import Work
from penstock.jobs.refresh.plan import choose_moment, choose_versions, make_context
from penstock.jobs.refresh.udtf import spark_partitions
from penstock.jobs.refresh.udtf.partitions import divide
from penstock.jobs.refresh.udtf.plan import count_partitions, is_sparks, to_partitioning
from penstock.jobs.refresh.udtf.run import count_rows
from penstock.jobs.refresh.udtf.spark_kernel import LABEL
from penstock.jobs.refresh.view_notes import Pins
from penstock.jobs.spark.sql_sessions import open_sql
from penstock.jobs.spark.tasks import Engine, FrameTasks, SparkWork, Tasks, explain
from penstock.jobs.specs import PreviewSpec, RefreshSpec
from penstock.lance.columns.schemas import decode_schema, encode_schema
from penstock.lance.session.remote import RemoteCatalog
from penstock.model.views import Definition

# Spark reads a source to its end, whatever is taken of it; mostly its first rows are enough.
FIRST_ROWS = 10_000
# Partitions with more rows are not tried.
MOST_ROWS = 1_000


class FunctionsPreview(Struct, frozen=True):
    """How many rows, or partitions, each new function was given, or why it can't be used."""

    version: int
    rows: int
    seconds: float
    failure: str = ""
    detail: str = ""
    # Why no function was called.
    untried: str = ""


def preview_functions(
    spec: PreviewSpec,
    catalog: RemoteCatalog,
    get_engine: Callable[[], Engine],
    attempt: Attempt,
) -> FunctionsPreview:
    """Call new functions for some rows; their failure is told, and does not fail the job."""
    assert spec.altered is not None
    work = _open(spec.altered, catalog, get_engine, attempt)
    order = _make_order(work, spec.rows)
    attempt.check()
    if is_sparks(work.definition):
        rows = count_rows(work)
        with open_sql(get_engine(), rows) as sql:
            opened = replace(work, get_engine=lambda: sql)
            is_some = work.definition.rows is not None and not order.is_partitions
            is_some = is_some and rows > FIRST_ROWS
            found = _read(work, _start_on_spark(opened, order, FIRST_ROWS if is_some else None))
            if is_some and not found.rows and not found.failure:
                found = _read(work, _start_on_spark(opened, order, None))
    else:
        found = _read(work, Tasks(get_engine(), lance_kernel(_choose(work, order)), 1, SCHEMA))
    for line in found.printed:
        attempt.log(line)
    return FunctionsPreview(
        work.view.version,
        found.rows,
        found.seconds,
        found.failure,
        found.detail,
        "" if found.rows or found.failure else _why_untried(order),
    )


def choose_partitions(counts: Mapping[str, int]) -> list[str]:
    """A small partition, one in the middle, and a large one, of those that are not too large."""
    fitting = sorted((n, label) for label, n in counts.items() if n <= MOST_ROWS)
    places = sorted({0, len(fitting) // 2, len(fitting) - 1}) if fitting else []
    return [fitting[place][1] for place in places]


def _open(
    altered: RefreshSpec,
    catalog: RemoteCatalog,
    get_engine: Callable[[], Engine],
    attempt: Attempt,
) -> Work:
    """The altered view and its sources as they are; as if it had to be made in full."""
    spec = structs.replace(altered, mode="full", watermark=None)
    newest = {
        source.id: (catalog.locate(source.table, ""), catalog.open_latest(source.table, ""))
        for source in spec.definition.sources
    }
    pins = Pins(choose_versions(spec, newest), choose_moment([spec]))
    location, view = catalog.locate(spec.table, ""), catalog.open_latest(spec.table, "")
    context = make_context(spec, location, view, newest, pins, "")
    return Work(
        spec=context.spec,
        location=context.location,
        view=context.view,
        sources=context.sources,
        moment=context.moment,
        rebuild=context.rebuild,
        catalog=catalog,
        attempt=attempt,
        get_engine=get_engine,
    )


def _make_order(work: Work, rows: int) -> FunctionsOrder:
    definition = work.definition
    return FunctionsOrder(
        job=work.attempt.job,
        attempt=work.attempt.number,
        view=work.location,
        functions=list_new_functions(work.spec.made_by, work.spec.definition),
        schema=definition.schema,
        cast=encode_schema(_list_cast(definition)),
        rows=rows,
        is_partitions=definition.kind == "udtf",
    )


def _list_cast(definition: Definition) -> pa.Schema:
    """The columns that have the view's types when a function reads them after Spark."""
    if definition.kind == "query":
        return decode_schema(definition.schema)
    schema = decode_schema(definition.schema)
    return pa.schema([schema.field(name) for name in definition.inherited])


def _choose(work: Work, order: FunctionsOrder) -> FunctionsOrder:
    """The order with what Lance reads."""
    rows = work.definition.rows
    assert rows is not None
    (source,) = work.sources.values()
    texts = {column.name: column.expression for column in rows.columns}
    order = structs.replace(
        order,
        source=VersionToOpen.of(source.location, source.now),
        columns={name: texts[name] for name in _list_inputs(order)},
        where=rows.filter,
    )
    if not order.is_partitions:
        return order
    divided = divide(source.dataset_now, to_partitioning(work.definition))
    numbers = {label: number for number, label in enumerate(divided.labels)}
    chosen = [numbers[label] for label in choose_partitions(count_partitions(divided))]
    ids = [divided.rows.ids[divided.numbers == number].tolist() for number in chosen]
    return structs.replace(order, partitions=tuple(map(tuple, ids)))


def _start_on_spark(work: Work, order: FunctionsOrder, first_rows: int | None) -> SparkWork:
    sql = work.get_engine()
    try:
        if not order.is_partitions:
            inputs = _list_inputs(order)
            frame = spark_partitions.load_rows(work, sql, inputs, most_rows=first_rows)
            frame = frame.limit(order.rows)
        else:
            found = spark_partitions.find_partitions(work, sql)
            chosen = choose_partitions({label: each.rows for label, each in found.items()})
            labelled = spark_partitions.label_rows(work, sql, dict.fromkeys(chosen, 0))
            frame = labelled.repartition(1).sortWithinPartitions(LABEL)
        return FrameTasks(sql, frame, spark_kernel(order), SCHEMA)
    # Spark has no common error for a query that it does not understand.
    except Exception as error:
        raise explain(error) from error


def _list_inputs(order: FunctionsOrder) -> Sequence[str]:
    return tuple(dict.fromkeys(name for each in order.functions for name in each.inputs))


def _read(work: Work, running: SparkWork) -> FunctionsFound:
    rows: list[Any] = wait_for(work.attempt, work.place, running, patience=0)
    return read_found(rows)


def _why_untried(order: FunctionsOrder) -> str:
    if order.is_partitions:
        return f"the new query gives no partition of at most {MOST_ROWS} rows"
    return "the new query gives no rows"
