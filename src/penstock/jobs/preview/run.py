"""The recipe of a preview: compute a column for a few rows, and write nothing.

Rows that fail are part of what is shown: they do not fail the job.
"""

import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from msgspec import Struct, convert

from penstock.errors import InvalidRequest, PenstockError
from penstock.jobs.engine import checkpoints
from penstock.jobs.engine.attempt import Attempt
from penstock.jobs.preview.kernel import (
    SCHEMA,
    Previewed,
    PreviewOrder,
    PreviewRow,
    preview_kernel,
    read_previewed,
)
from penstock.jobs.spark.tasks import Engine, Tasks
from penstock.lance.read.samples import SampledRow, evaluate, show_inputs, show_value, take_sample
from penstock.lance.session.remote import RemoteCatalog
from penstock.model.functions import Function, RowError

if TYPE_CHECKING:
    from lance import LanceDataset

POLL_SECONDS = 0.05


class PreviewSpec(Struct, frozen=True):
    """What of a job's spec a preview needs."""

    table: tuple[str, ...]
    column: str
    rows: int
    branch: str = ""
    expression: str | None = None
    function: Function | None = None
    columns: tuple[str, ...] = ()
    inputs: tuple[str, ...] = ()
    where: str | None = None


class PreviewResult(Struct, frozen=True):
    """What the column would be: a value, or an error, for each row of the sample."""

    version: int
    rows: int
    values: tuple[PreviewRow, ...]
    errors: tuple[RowError, ...]
    # Of the function alone; None when it took no time that can be measured.
    seconds: float
    rows_per_second: float | None
    printed: tuple[str, ...] = ()


def run_preview(
    spec: Mapping[str, Any],
    catalog: RemoteCatalog,
    get_engine: Callable[[], Engine],
    attempt: Attempt,
) -> PreviewResult:
    """Compute the column for the first rows that match; SQL needs no Spark for it."""
    wanted = convert(spec, PreviewSpec)
    dataset = catalog.open_latest(wanted.table, wanted.branch)
    attempt.check()
    if wanted.function is None:
        found = _evaluate(dataset, wanted)
    else:
        location = catalog.locate(wanted.table, wanted.branch)
        order = PreviewOrder(
            attempt.job,
            attempt.number,
            location.uri,
            location.branch,
            location.options,
            dataset.version,
            wanted.function,
            wanted.columns or (wanted.column,),
            wanted.where,
            wanted.rows,
        )
        found = _run(order, get_engine(), attempt)
    failed, rows = len(found.errors), len(found.values)
    attempt.progress(rows_total=rows, rows_done=rows, rows_failed=failed, function_calls=rows)
    rate = round(rows / found.seconds, 1) if found.seconds > 0 and rows else None
    return PreviewResult(
        dataset.version,
        rows,
        found.values,
        found.errors,
        round(found.seconds, 6),
        rate,
        found.printed,
    )


def sweep_preview(spec: Mapping[str, Any], catalog: RemoteCatalog, job: str, attempt: int) -> int:
    """Remove what a function printed before it failed; nothing else is ever written."""
    wanted = convert(spec, PreviewSpec)
    return checkpoints.sweep(catalog.locate(wanted.table, wanted.branch), job, attempt)


def _run(order: PreviewOrder, engine: Engine, attempt: Attempt) -> Previewed:
    running = Tasks(engine, preview_kernel(order), 1, SCHEMA)
    try:
        while not running.wait(POLL_SECONDS):
            attempt.check()
        return read_previewed(running.result())
    except BaseException:
        if not running.wait(0):
            running.cancel()
        raise


def _evaluate(dataset: "LanceDataset", wanted: PreviewSpec) -> Previewed:
    expression = wanted.expression
    if expression is None:
        raise InvalidRequest(f"column {wanted.column} is bound to nothing", detail="bind it first")
    sample, inputs = take_sample(dataset, wanted.inputs, wanted.where, wanted.rows)
    started = time.perf_counter()
    errors: list[RowError] = []
    try:
        values = evaluate(dataset, expression, [row.row_id for row in sample])
    except PenstockError:
        # A row for which it cannot be computed spoils the others: each by itself, then.
        values = []
        for number, row in enumerate(sample):
            try:
                values += evaluate(dataset, expression, [row.row_id])
            except PenstockError as error:
                given = [column[number].as_py() for column in inputs.columns]
                errors.append(_to_error(row, show_inputs(wanted.inputs, given), error))
                values.append(None)
    seconds = time.perf_counter() - started
    rows = tuple(
        PreviewRow(row.row_id, row.fragment, row.offset, {wanted.column: show_value(value)})
        for row, value in zip(sample, values, strict=True)
    )
    return Previewed(rows, tuple(errors), seconds)


def _to_error(row: SampledRow, inputs: str, error: PenstockError) -> RowError:
    return RowError(
        row_id=row.row_id,
        fragment=row.fragment,
        offset=row.offset,
        inputs=inputs,
        exception="ExpressionError",
        message=error.message,
        traceback="",
        tries=1,
        at=int(time.time() * 1000),
    )
