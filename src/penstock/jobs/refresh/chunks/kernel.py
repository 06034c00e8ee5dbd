"""Run a chunker in a Python worker: read source rows, and write their children into files.

Where only inherited columns changed, children are copied from the view with the new values.
"""

import hashlib
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from lance import LanceDataset
from msgspec import Struct, json

from penstock.errors import InvalidTableState
from penstock.jobs.engine.checkpoints import is_stopped
from penstock.jobs.engine.finished import NewRows, encode_ids, write_finished
from penstock.jobs.engine.guard import Stopped, guard
from penstock.jobs.engine.row_ranges import RowRange, divide_some
from penstock.jobs.functions.children import flatten, made_schema
from penstock.jobs.functions.rows import KeyedRows, RowsRun
from penstock.jobs.functions.task import FunctionOptions, FunctionTask
from penstock.jobs.refresh.chunks.child_files import ChildFiles
from penstock.jobs.refresh.chunks.children import ROW_ID, HeldChildren, ViewChildren
from penstock.jobs.refresh.chunks.limits import Cap, ChunkLimit
from penstock.jobs.refresh.chunks.matching import ComparedColumns
from penstock.jobs.refresh.row_files import RowFiles
from penstock.jobs.spark.tasks import Kernel, is_second_try
from penstock.lance.diff.equal import as_ids, combine
from penstock.lance.diff.row_sets import decode_row_set
from penstock.lance.errors import translated
from penstock.lance.read.scans import ADDRESS, quote_parts, read_row_ids, scan_columns
from penstock.lance.session.remote import Location, open_planned
from penstock.lance.write.column_files import get_fragment
from penstock.model.functions import Function
from penstock.model.views import CHILD_INDEX, SOURCE_ROW_ID

# Under a limit, how many source rows are read at once, at first and at most.
FIRST_ROWS, MOST_ROWS = 16, 4096


class VersionToOpen(Struct, frozen=True):
    """A version of a table for a worker to open."""

    uri: str
    branch: str
    options: Mapping[str, str]
    version: int
    # Of an unpublished version.
    manifest: str = ""

    @classmethod
    def of(cls, location: Location, version: int) -> "VersionToOpen":
        manifest = location.manifest if location.held == version else ""
        return cls(location.uri, location.branch, location.options, version, manifest)

    @property
    def location(self) -> Location:
        held = self.version if self.manifest else None
        return Location(self.uri, self.branch, self.options, held, self.manifest)

    def open(self, reader: str) -> LanceDataset:
        return open_planned(self.location, self.version, reader)


class ChunkTask(Struct, frozen=True):
    """Source rows to call the function for, and view rows that get new inherited values."""

    call: tuple[RowRange, ...] = ()
    follow: tuple[RowRange, ...] = ()

    @property
    def rows(self) -> int:
        return sum(unit.rows for unit in self.call)


class ChunkOrder(Struct, frozen=True, kw_only=True):
    """Everything that workers need; sent in the kernel's closure."""

    job: str
    attempt: int
    view: VersionToOpen
    source: VersionToOpen
    function: Function
    # The query's columns by name, and its filter, in the SQL of whoever evaluates them.
    columns: dict[str, str]
    where: str | None
    # Columns that come from the query, and Lance's expression for each.
    inherited: dict[str, str]
    # The columns of the view that are written.
    written: tuple[str, ...]
    # How children that the view has are found among those that are made; None: they are not.
    compared: ComparedColumns | None
    tasks: tuple[ChunkTask, ...]
    # Source rows that have children in the view, as a set.
    had: bytes
    # Source rows whose children in the view are as the function made them, as a set.
    known: bytes
    limit: ChunkLimit | None = None
    knobs: FunctionOptions = FunctionOptions()
    max_rows: int | None = None

    def key(self, number: int) -> str:
        """The identity of a task's work, as 32 characters."""
        what = [self.tasks[number], self.limit, self.view.version, self.source.version]
        return hashlib.sha256(json.encode(what)).hexdigest()[:32]


def chunk_kernel(order: ChunkOrder, numbers: Sequence[int]) -> Kernel:
    """Runs in each worker for these tasks."""
    return partial(_run, json.encode(order), tuple(numbers))


def _run(
    encoded: bytes, numbers: Sequence[int], items: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    order = json.decode(encoded, type=ChunkOrder)
    for batch in items:
        for item in batch.column(0).to_pylist():
            number = numbers[item]
            yield from guard(partial(make_chunks, order, number, is_second=is_second_try()))


def make_chunks(
    order: ChunkOrder,
    number: int,
    rows: Iterator[pa.RecordBatch] | None = None,
    *,
    is_second: bool = False,
) -> None:
    """Write the files of one task, and its note; reads its rows, unless they are given."""
    location = order.view.location
    if is_stopped(location.place(), order.job, order.attempt):
        raise Stopped
    started = time.perf_counter()
    maker = _Maker(order, number, is_second=is_second)
    if order.tasks[number].call or order.limit is not None:
        maker.call(maker.read() if rows is None else rows)
    for unit in order.tasks[number].follow:
        maker.follow(unit)
    maker.finish(time.perf_counter() - started)


class _Maker:
    """One try of a task."""

    def __init__(self, order: ChunkOrder, number: int, *, is_second: bool) -> None:
        self._order = order
        self._number = number
        self._is_second = is_second
        self._location = order.view.location
        self._source = order.source.open(order.job)
        self._view = order.view.open(order.job)
        self._had = decode_row_set(order.had)
        new, moved = (
            RowFiles(
                *(self._view, self._location, order.written),
                *(order.job, order.attempt, order.max_rows),
            )
            for _ in range(2)
        )
        self._schema = new.schema
        self._files = ChildFiles(new, moved, self._find_held(), order.compared)
        self._cap = None if order.limit is None else Cap(order.limit)
        self._inserted = self._calls = 0
        self._failed: list[Any] = []

    def call(self, items: Iterator[pa.RecordBatch]) -> None:
        """Make the children of source rows, which come with the query's columns."""
        order, schema = self._order, self._schema
        fields = [
            pa.field(each.column, schema.field(each.column).type, each.nullable)
            for each in order.function.outputs
        ]
        task = FunctionTask(
            self._location.place(),
            order.job,
            order.attempt,
            order.function,
            made_schema(fields),
            order.knobs if self._cap is None else replace(order.knobs, threads=1, in_turn=True),
            isolated=self._is_second,
        )
        if self._cap is not None:
            items = self._cap.feed(items, task.size)
        in_order = self._cap is not None
        known = ViewChildren(self._view, decode_row_set(order.known), task.kinds)
        finders = (known, task.parts)
        run = RowsRun(task, items, ROW_ID, unit=self._number, in_order=in_order, finders=finders)
        try:
            for keyed in run:
                self._failed.append(keyed.keys[keyed.failed])
                self._write(keyed)
        finally:
            self._calls = run.calls
            task.close()

    def follow(self, unit: RowRange) -> None:
        """Copy children, with the current inherited values of their source rows."""
        order, schema = self._order, self._schema
        own = [name for name in order.written if name not in order.inherited]
        fragment = get_fragment(self._view, unit.fragment)
        columns = {name: quote_parts((name,)) for name in own}
        wanted = unit.wanted(fragment.physical_rows)
        for batch in scan_columns(self._view, fragment, columns, wanted=wanted, with_row_id=True):
            sources, places = np.unique(as_ids(batch.column(SOURCE_ROW_ID)), return_inverse=True)
            values = dict(zip(order.inherited, self._inherit(sources), strict=True))
            made = [
                values[name].take(pa.array(places)) if name in values else batch.column(name)
                for name in schema.names
            ]
            moved = pa.record_batch(cast_columns(made, schema), schema=schema)
            self._files.move(moved, as_ids(batch.column(ROW_ID)))

    def finish(self, seconds: float) -> None:
        """Close the files, and write the note."""
        order = self._order
        made = NewRows(
            key=order.key(self._number),
            attempt=order.attempt,
            fragments=self._files.close(),
            rows=self._files.rows,
            inserted=self._inserted,
            calls=self._calls,
            seconds=round(seconds, 4),
            failed=encode_ids(np.concatenate([np.empty(0, np.int64), *self._failed])),
            counts=() if self._cap is None else tuple(self._cap.counts),
            is_cut=self._cap is not None and self._cap.is_cut,
            unchanged=self._files.unchanged,
            staying=encode_ids(self._files.staying),
            alike=encode_ids(self._files.alike),
        )
        write_finished(self._location.place(), order.job, made)

    def read(self) -> Iterator[pa.RecordBatch]:
        """The rows of the task, with a limit by id."""
        return self._read() if self._cap is None else self._read_in_order()

    def _read(self) -> Iterator[pa.RecordBatch]:
        for unit in self._order.tasks[self._number].call:
            yield from self._scan(unit, self._order.where)

    def _read_in_order(self) -> Iterator[pa.RecordBatch]:
        limit = self._order.limit
        assert limit is not None
        ids, fragments, offsets = (
            np.frombuffer(each, np.int64) for each in (limit.ids, limit.fragments, limit.offsets)
        )
        at, size = 0, FIRST_ROWS
        while at < len(ids):
            rows = slice(at, at + size)
            ((*units,),) = divide_some(fragments[rows], offsets[rows], 1)
            found = pa.concat_batches([batch for unit in units for batch in self._scan(unit, None)])
            yield found.take(pa.array(np.argsort(as_ids(found.column(ROW_ID)))))
            at, size = at + size, min(MOST_ROWS, size * 4)

    def _scan(self, unit: RowRange, where: str | None) -> Iterator[pa.RecordBatch]:
        fragment = get_fragment(self._source, unit.fragment)
        names = [*self._order.columns]
        # By number: Lance need not know the names.
        columns = {str(n): each for n, each in enumerate(self._order.columns.values())}
        for batch in scan_columns(
            self._source,
            fragment,
            columns,
            where=where,
            wanted=unit.wanted(fragment.physical_rows),
            with_row_id=True,
        ):
            taken = batch.select([*columns, ROW_ID, ADDRESS])
            yield taken.rename_columns([*names, ROW_ID, ADDRESS])

    def _inherit(self, ids: Any) -> list[pa.Array]:
        """The inherited values of some source rows."""
        columns = {str(n): each for n, each in enumerate(self._order.inherited.values())}
        with translated():
            found = self._source._take_rows(
                pa.array(ids, pa.uint64()), columns={**columns, ROW_ID: ROW_ID}
            )
        if not np.array_equal(as_ids(found[ROW_ID]), ids):
            raise InvalidTableState(f"version {self._source.version} lost some of its rows")
        return [combine(found[name]) for name in columns]

    def _write(self, keyed: KeyedRows) -> None:
        """Write the children of some rows."""
        schema = self._schema
        children = flatten(keyed.values)
        parents, numbers, rows = children
        if self._cap is not None:
            taken = self._cap.take(keyed.keys, parents, numbers)
            parents, numbers = parents[taken], numbers[taken]
            rows = rows.filter(pa.array(taken))
        sources, inherited = keyed.keys[parents], pa.array(parents)
        made = {SOURCE_ROW_ID: pa.array(sources), CHILD_INDEX: pa.array(numbers)}
        for name in self._order.inherited:
            made[name] = keyed.batch.column(name).take(inherited)
        columns = [made[n] if n in made else rows.column(n) for n in schema.names]
        self._inserted += int((~self._had.contains(sources)).sum())
        made_rows = pa.record_batch(cast_columns(columns, schema), schema=schema)
        self._files.add(keyed.keys, made_rows)

    def _find_held(self) -> HeldChildren | None:
        """The children that the view has of the rows to call, if they can be compared."""
        order = self._order
        if order.compared is None or not len(self._had):
            return None
        if order.limit is not None:
            ids = np.frombuffer(order.limit.ids, np.int64)
        else:
            units = order.tasks[self._number].call
            ids = np.concatenate([np.empty(0, np.int64), *map(self._list_ids, units)])
        sources = ids[self._had.contains(ids)]
        return HeldChildren(self._view, sources, order.compared.names) if len(sources) else None

    def _list_ids(self, unit: RowRange) -> Any:
        """The row ids of source rows; 0 for deleted ones."""
        fragment = get_fragment(self._source, unit.fragment)
        ids = as_ids(pa.array(read_row_ids(self._source, fragment)))
        wanted = unit.wanted(fragment.physical_rows)
        return ids if wanted is None else ids[wanted]


def cast_columns(columns: list[Any], schema: pa.Schema) -> list[Any]:
    return [
        column if column.type == field.type else column.cast(field.type)
        for column, field in zip(columns, schema, strict=True)
    ]
