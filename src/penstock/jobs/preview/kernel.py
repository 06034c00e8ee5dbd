"""Preview a function on Spark: one task calls it for a few rows and returns the results.

The functions below `preview_kernel` run in a Python worker, which needs penstock installed.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import pyarrow as pa
from msgspec import Struct, json, structs

from penstock.errors import FunctionFailed, Unavailable
from penstock.jobs.functions.task import FunctionOptions, FunctionTask
from penstock.jobs.spark.tasks import Kernel, is_second_try
from penstock.lance.read.samples import SampledRow, show_inputs, show_value, take_sample
from penstock.lance.session.remote import Location, open_version
from penstock.lance.write.column_files import get_targets
from penstock.model.functions import Function, OnError, RowError

SCHEMA = "previewed string"


class PreviewOrder(Struct, frozen=True):
    """Everything the worker needs; sent in the kernel's closure."""

    job: str
    attempt: int
    uri: str
    branch: str
    options: Mapping[str, str]
    version: int
    function: Function
    columns: tuple[str, ...]
    where: str | None
    rows: int


class PreviewRow(Struct, frozen=True):
    """A sampled row, and the new values of its columns; null where it failed."""

    row_id: int
    fragment: int
    offset: int
    values: dict[str, Any]


class PreviewValues(Struct, frozen=True):
    values: tuple[PreviewRow, ...] = ()
    errors: tuple[RowError, ...] = ()
    seconds: float = 0.0
    # How many rows are null without a call, because an input is.
    rows_null: int = 0
    printed: tuple[str, ...] = ()
    # Why the function can't be called at all.
    failure: str = ""
    detail: str = ""


def preview_kernel(order: PreviewOrder) -> Kernel:
    """Runs in the worker; yields one row with everything as JSON."""
    return partial(_preview, json.encode(order))


def read_values(rows: Sequence[Any]) -> PreviewValues:
    """Read the worker's output; raises when the function could not be called."""
    if len(rows) != 1:
        raise Unavailable("the worker of the preview did not answer")
    found = json.decode(rows[0][0], type=PreviewValues)
    if found.failure:
        raise FunctionFailed(found.failure, detail=found.detail)
    return found


def _preview(encoded: bytes, numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    order = json.decode(encoded, type=PreviewOrder)
    for batch in numbers:
        for _ in range(batch.num_rows):
            try:
                found = _call(order)
            except FunctionFailed as error:
                # A permanent error, so Spark must not retry it.
                found = PreviewValues(failure=error.message, detail=error.detail)
            yield pa.record_batch([[json.encode(found).decode()]], ["previewed"])


def _call(order: PreviewOrder) -> PreviewValues:
    function = structs.replace(order.function, on_error=_tolerant(order.function.on_error))
    location = Location(order.uri, order.branch, order.options)
    dataset = open_version(location, order.version)
    sample, batch = take_sample(dataset, function.inputs, order.where, order.rows)
    if not sample:
        return PreviewValues()
    targets = get_targets(dataset, order.columns)
    kinds = pa.schema([pa.field(target.name, target.kind) for target in targets])
    # A second try may follow a function that killed its process.
    isolated = is_second_try()
    task = FunctionTask(
        location.place(),
        order.job,
        order.attempt,
        function,
        kinds,
        FunctionOptions(),
        isolated=isolated,
    )
    try:
        done = task.policy.compute(batch)
        printed = task.output.take()
    finally:
        task.close()
    rows = done.values.to_pylist()
    errors = [
        RowError(
            row_id=sample[number].row_id,
            fragment=sample[number].fragment,
            offset=sample[number].offset,
            inputs=show_inputs(function.inputs, [c[number].as_py() for c in batch.columns]),
            exception=failure.exception,
            message=failure.message,
            traceback=failure.traceback,
            tries=tries,
            at=int(time.time() * 1000),
        )
        for number, (failure, tries) in sorted(done.failures.items())
    ]
    values = [_show(row, value) for row, value in zip(sample, rows, strict=True)]
    return PreviewValues(tuple(values), tuple(errors), done.seconds, done.rows_null, tuple(printed))


def _tolerant(on_error: OnError) -> OnError:
    """The same retries; but a row that fails for good is left empty."""
    action = "retry" if on_error.action == "retry" else "skip"
    return structs.replace(on_error, action=action, max_failed_rows=None, max_failed_fraction=1.0)


def _show(row: SampledRow, values: Mapping[str, Any]) -> PreviewRow:
    shown = {name: show_value(value) for name, value in values.items()}
    return PreviewRow(row.row_id, row.fragment, row.offset, shown)
