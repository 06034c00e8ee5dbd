"""The recipe of a preview: compute a column, or an altered view's, for a few rows; write nothing.

Failed rows are shown as such: they do not fail the job.
"""

import time
from collections.abc import Callable

from lance import LanceDataset
from msgspec import Struct, structs

from penstock.errors import ConcurrentCommit, InvalidRequest, PenstockError
from penstock.jobs.engine.attempt import COMPUTING, Attempt
from penstock.jobs.kept.sweep import sweep
from penstock.jobs.preview.functions import FunctionsPreview, preview_functions
from penstock.jobs.preview.kernel import (
    SCHEMA,
    PreviewOrder,
    PreviewRow,
    PreviewValues,
    preview_kernel,
    read_values,
)
from penstock.jobs.spark.tasks import Engine, Tasks
from penstock.jobs.specs import PreviewSpec, Recipe
from penstock.lance.columns.computed import find_bound
from penstock.lance.read.samples import SampledRow, evaluate, show_inputs, show_value, take_sample
from penstock.lance.session.remote import RemoteCatalog
from penstock.model.functions import RowError

POLL_SECONDS = 0.05


class PreviewResult(Struct, frozen=True):
    """A value, or an error, for each row of the sample."""

    version: int
    rows: int
    values: tuple[PreviewRow, ...]
    errors: tuple[RowError, ...]
    # Of the function alone; None when it was too fast to measure.
    seconds: float
    rows_per_second: float | None
    printed: tuple[str, ...] = ()


def run_preview(
    spec: PreviewSpec,
    catalog: RemoteCatalog,
    get_engine: Callable[[], Engine],
    attempt: Attempt,
) -> PreviewResult:
    """Compute the column for the first rows that match; SQL does not need Spark."""
    dataset = catalog.open_latest(spec.table, spec.branch)
    attempt.check()
    spec = _follow(spec, dataset)
    if spec.function is None:
        found = _evaluate(dataset, spec)
    else:
        engine = get_engine()
        attempt.phase(COMPUTING)
        location = catalog.locate(spec.table, spec.branch)
        order = PreviewOrder(
            attempt.job,
            attempt.number,
            location.uri,
            location.branch,
            location.options,
            dataset.version,
            spec.function,
            spec.targets,
            spec.where,
            spec.rows,
        )
        found = _run_task(order, engine, attempt)
    failed, rows = len(found.errors), len(found.values)
    calls = rows - found.rows_null
    attempt.progress(rows_total=rows, rows_done=rows, rows_failed=failed, function_calls=calls)
    rate = round(calls / found.seconds, 1) if found.seconds > 0 and calls else None
    return PreviewResult(
        dataset.version,
        rows,
        found.values,
        found.errors,
        round(found.seconds, 6),
        rate,
        found.printed,
    )


def _follow(spec: PreviewSpec, dataset: LanceDataset) -> PreviewSpec:
    """The spec with the names of this version, if they are not those of the request."""
    if not spec.binding:
        return spec
    found = find_bound(dataset.schema, spec.binding, spec.targets)
    known = {spec.inputs} if spec.function is None else {spec.inputs, spec.function.inputs}
    if found.inputs not in known:
        raise ConcurrentCommit(
            f"what column {found.name} reads has other names since the preview was requested",
            detail="request it again",
        )
    function = None if spec.function is None else spec.function.reading(found.inputs)
    return structs.replace(
        spec, column=found.columns[0], columns=found.columns, inputs=found.inputs, function=function
    )


def sweep_preview(spec: PreviewSpec, catalog: RemoteCatalog, job: str, attempt: int) -> int:
    """Remove what a function printed before it failed; nothing else is ever written."""
    return sweep(catalog.locate(spec.table, spec.branch), job, attempt)


def _run_task(order: PreviewOrder, engine: Engine, attempt: Attempt) -> PreviewValues:
    running = Tasks(engine, preview_kernel(order), 1, SCHEMA)
    try:
        while not running.wait(POLL_SECONDS):
            attempt.check()
        return read_values(running.result())
    except BaseException:
        if not running.wait(0):
            running.cancel()
        raise


def _evaluate(dataset: LanceDataset, spec: PreviewSpec) -> PreviewValues:
    expression = spec.expression
    if expression is None:
        raise InvalidRequest(f"column {spec.column} is bound to nothing", detail="bind it first")
    sample, inputs = take_sample(dataset, spec.inputs, spec.where, spec.rows)
    started = time.perf_counter()
    errors: list[RowError] = []
    try:
        values = evaluate(dataset, expression, [row.row_id for row in sample])
    except PenstockError:
        # One row's failure spoils the others, so compute each by itself.
        values = []
        for number, row in enumerate(sample):
            try:
                values += evaluate(dataset, expression, [row.row_id])
            except PenstockError as error:
                given = [column[number].as_py() for column in inputs.columns]
                errors.append(_to_error(row, show_inputs(spec.inputs, given), error))
                values.append(None)
    seconds = time.perf_counter() - started
    rows = tuple(
        PreviewRow(row.row_id, row.fragment, row.offset, {spec.column: show_value(value)})
        for row, value in zip(sample, values, strict=True)
    )
    return PreviewValues(rows, tuple(errors), seconds)


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


def _run(
    spec: PreviewSpec,
    catalog: RemoteCatalog,
    get_engine: Callable[[], Engine],
    attempt: Attempt,
) -> PreviewResult | FunctionsPreview:
    run = run_preview if spec.altered is None else preview_functions
    return run(spec, catalog, get_engine, attempt)


RECIPE = Recipe(_run, sweep_preview)
