"""Compute new rows of a view in Python workers, which need penstock installed.

A task works in units and leaves a note for each finished one, so that any later attempt can commit
its files.
"""

import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from lance import LanceDataset
from msgspec import Struct, json

from penstock.errors import SchemaMismatch
from penstock.jobs.engine.checkpoints import is_stopped
from penstock.jobs.engine.finished import NewRows, encode_ids, write_finished
from penstock.jobs.engine.guard import Stopped, guard
from penstock.jobs.engine.needed_rows import ROW_ID, scan_needed
from penstock.jobs.engine.row_ranges import NeededRows
from penstock.jobs.functions.rows import RowsRun
from penstock.jobs.functions.task import FunctionOptions, FunctionTask
from penstock.jobs.refresh.row_files import RowFiles
from penstock.jobs.refresh.rows.view_rows import find_view_rows
from penstock.jobs.spark.tasks import Kernel, is_second_try
from penstock.lance.columns.fields import show_path
from penstock.lance.read.by_id import RowReader
from penstock.lance.read.scans import ADDRESS, offsets_of
from penstock.lance.session.remote import Location, open_planned
from penstock.lance.storage.lake import Place
from penstock.lance.write.column_files import get_fragment
from penstock.model.functions import Function
from penstock.model.views import SOURCE_ROW_ID, Rows


class Unit(Struct, frozen=True):
    """Rows that are computed together; equal keys stand for equal rows."""

    key: str
    needed: tuple[NeededRows, ...]

    @property
    def rows(self) -> int:
        return sum(each.rows for each in self.needed)


class RowsOrder(Struct, frozen=True, kw_only=True):
    """Everything that workers need; sent in the kernel's closure."""

    job: str
    attempt: int
    source: Location
    source_version: int
    view: Location
    view_version: int
    rows: Rows
    # The view's columns that are written.
    columns: tuple[str, ...]
    functions: tuple[Function, ...]
    tasks: tuple[tuple[Unit, ...], ...]
    max_rows: int | None
    knobs: FunctionOptions


def rows_kernel(order: RowsOrder) -> Kernel:
    """Runs in each worker when Lance evaluates the query."""
    return partial(_run, json.encode(order))


def _run(encoded: bytes, numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    order = json.decode(encoded, type=RowsOrder)
    for batch in numbers:
        for number in batch.column(0).to_pylist():
            worker = Worker(order, number, is_second=is_second_try())
            yield from worker.guard(worker.compute_units)


class Worker:
    """One try of a task."""

    def __init__(self, order: RowsOrder, number: int, *, is_second: bool = False) -> None:
        self._order = order
        self._number = number
        self._place: Place = order.view.place()
        self._is_second = is_second
        # By function: the last one is asked for rows, and so for its task, first.
        self._tasks: dict[int, FunctionTask] = {}
        self._old: _OldValues | None = None

    def guard(self, work: Callable[[], None]) -> Iterator[pa.RecordBatch]:
        """Do the work, and end the functions with it."""
        try:
            yield from guard(work)
        finally:
            for task in self._tasks.values():
                task.close()

    def compute_units(self) -> None:
        """Compute the task's units, one after the other."""
        order = self._order
        source = open_planned(order.source, order.source_version, order.job)
        for unit in order.tasks[self._number]:
            self.write_unit(unit, scan_unit(source, unit, order))

    def write_unit(self, unit: Unit, batches: Iterator[pa.RecordBatch]) -> None:
        """Write rows of a unit, which have the query's outputs, `_rowid` and `_rowaddr`."""
        order = self._order
        started = time.perf_counter()
        view = open_planned(order.view, order.view_version, order.job)
        files = RowFiles(view, order.view, order.columns, order.job, order.attempt, order.max_rows)
        counts = _Counts(join_masks(unit, lambda each: each.was))
        stream = self._check(batches)
        runs: list[RowsRun] = []
        failed: set[int] = set()
        for number, function in enumerate(order.functions):
            stream = self._fill(view, stream, number, function, unit, runs, failed)
        for batch in stream:
            counts.add(batch)
            files.write(_to_view(batch, files.schema, view.schema))
        note = NewRows(
            key=unit.key,
            attempt=order.attempt,
            fragments=files.close(),
            rows=counts.rows,
            inserted=counts.rows - counts.updated,
            calls=sum(run.calls for run in runs),
            seconds=round(time.perf_counter() - started, 4),
            failed=encode_ids(np.array(sorted(failed), np.int64)),
        )
        write_finished(self._place, order.job, note)

    def _check(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            if is_stopped(self._place, self._order.job, self._order.attempt):
                raise Stopped
            yield batch

    # Functions -------------------------------------------------------------------------------

    def _fill(
        self,
        view: LanceDataset,
        stream: Iterator[pa.RecordBatch],
        number: int,
        function: Function,
        unit: Unit,
        runs: list[RowsRun],
        failed: set[int],
    ) -> Iterator[pa.RecordBatch]:
        """Add a function's values: computed ones, and those of the view that are still right."""
        task = self._get_task(view, number, function)
        kept = join_masks(unit, lambda each: each.kept[number] if each.kept else None)
        waiting: deque[pa.RecordBatch] = deque()

        def to_compute() -> Iterator[pa.RecordBatch]:
            for batch in stream:
                keep = _pick(batch, kept)
                if keep.any():
                    waiting.append(self._add_old(view, batch.filter(pa.array(keep)), task.kinds))
                if not keep.all():
                    yield batch.filter(pa.array(~keep))

        run = RowsRun(task, to_compute(), ROW_ID, unit=self._number)
        runs.append(run)
        for found in run:
            failed.update(found.keys[found.failed].tolist())
            yield _add(found.batch, found.values)
            while waiting:
                yield waiting.popleft()
        yield from waiting

    def _get_task(self, view: LanceDataset, number: int, function: Function) -> FunctionTask:
        if number in self._tasks:
            return self._tasks[number]
        order = self._order
        fields = [view.schema.field(output.column) for output in function.outputs]
        task = FunctionTask(
            self._place,
            order.job,
            order.attempt,
            function,
            pa.schema([pa.field(field.name, field.type) for field in fields]),
            order.knobs,
            isolated=self._is_second,
        )
        self._tasks[number] = task
        return task

    def _add_old(
        self, view: LanceDataset, batch: pa.RecordBatch, kinds: pa.Schema
    ) -> pa.RecordBatch:
        if self._old is None:
            self._old = _OldValues(view)
        ids = np.asarray(batch.column(ROW_ID)).astype(np.int64)
        return _add(batch, self._old.read(ids, kinds))


class _OldValues:
    """The view's values, by their source rows."""

    def __init__(self, view: LanceDataset) -> None:
        self._rows = find_view_rows(view, None)
        self._reader = RowReader(view, [each.fragment_id for each in view.get_fragments()])

    def read(self, sources: Any, kinds: pa.Schema) -> pa.RecordBatch:
        ids = self._rows.ids[np.searchsorted(self._rows.sources, sources)]
        paths = [show_path((name,)) for name in kinds.names]
        return pa.record_batch(self._reader.read(ids, paths), schema=kinds)


class _Counts:
    """How many rows were written, and how many of them the view had."""

    def __init__(self, was: Mapping[int, Any]) -> None:
        self._was = was
        self.rows = 0
        self.updated = 0

    def add(self, batch: pa.RecordBatch) -> None:
        self.rows += batch.num_rows
        self.updated += int(_pick(batch, self._was).sum())


def scan_unit(source: LanceDataset, unit: Unit, order: RowsOrder) -> Iterator[pa.RecordBatch]:
    """The query's outputs, evaluated by Lance."""
    names = [column.name for column in order.rows.columns]
    # Lance need not know the names.
    columns = {str(n): column.expression for n, column in enumerate(order.rows.columns)}
    for needed in unit.needed:
        fragment = get_fragment(source, needed.fragment)
        for batch in scan_needed(source, fragment, needed, columns, order.rows.filter):
            taken = batch.select([*columns, ROW_ID, ADDRESS])
            yield taken.rename_columns([*names, ROW_ID, ADDRESS])


def join_masks(unit: Unit, pick: Callable[[NeededRows], bytes | None]) -> dict[int, Any]:
    """The masks of a unit's fragments; a unit may have several parts of one."""
    found: dict[int, Any] = {}
    for each in unit.needed:
        mask = each.mask(pick(each))
        if mask is not None:
            found[each.fragment] = mask | found.get(each.fragment, False)
    return found


def _pick(batch: pa.RecordBatch, masks: Mapping[int, Any]) -> Any:
    """Which rows of a batch are in their fragments' masks."""
    found = np.zeros(batch.num_rows, bool)
    if not masks:
        return found
    fragments = (np.asarray(batch.column(ADDRESS)).astype(np.uint64) >> np.uint64(32)).astype(int)
    offsets = offsets_of(batch)
    for id in np.unique(fragments).tolist():
        mask = masks.get(id)
        if mask is not None:
            of = fragments == id
            found[of] = mask[offsets[of]]
    return found


def _add(batch: pa.RecordBatch, values: pa.RecordBatch) -> pa.RecordBatch:
    # A function may fill a column with the name of an input.
    kept = [name for name in batch.schema.names if name not in values.schema.names]
    return pa.record_batch(
        [*(batch.column(name) for name in kept), *values.columns],
        [*kept, *values.schema.names],
    )


def _to_view(batch: pa.RecordBatch, schema: pa.Schema, view: pa.Schema) -> pa.RecordBatch:
    """A batch as the view's columns, in the types of files."""
    arrays = []
    for field in schema:
        values = batch.column(ROW_ID if field.name == SOURCE_ROW_ID else field.name)
        if values.type != field.type:
            try:
                values = values.cast(field.type)
            except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
                raise SchemaMismatch(
                    f"column {field.name} of the view is {field.type}, and what the query gives "
                    f"does not fit: {str(error).splitlines()[0][:300]}",
                    detail=f"cast {field.name} in the query",
                ) from error
        if values.null_count and not view.field(field.name).nullable:
            raise SchemaMismatch(
                f"column {field.name} of the view may not be null, and the query gives nulls",
                detail=f"filter them out, or declare {field.name} nullable in output_schema",
            )
        arrays.append(values)
    return pa.record_batch(arrays, schema=schema)
