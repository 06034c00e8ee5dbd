"""Run a function of partitions in a Python worker: read partitions, and write rows of the view."""

import hashlib
import time
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from msgspec import Struct, json

from penstock.errors import FunctionFailed
from penstock.jobs.engine.checkpoints import is_stopped
from penstock.jobs.engine.finished import NewRows, encode_ids, write_finished
from penstock.jobs.engine.guard import Stopped, guard
from penstock.jobs.engine.row_ranges import divide_some
from penstock.jobs.functions.children import flatten, made_schema
from penstock.jobs.functions.rows import PARTITION_ROWS, RowsRun
from penstock.jobs.functions.task import FunctionOptions, FunctionTask
from penstock.jobs.refresh.chunks.kernel import ROW_ID, VersionToOpen, cast_columns
from penstock.jobs.refresh.row_files import RowFiles
from penstock.jobs.refresh.udtf.partitions import Partitioning, divide, number_of
from penstock.jobs.spark.tasks import Kernel, is_second_try
from penstock.lance.diff.equal import as_ids
from penstock.lance.diff.row_sets import RowPlaces, decode_row_set
from penstock.lance.read.scans import scan_columns
from penstock.lance.write.column_files import get_fragment
from penstock.model.functions import Function
from penstock.model.views import PARTITION

NUMBER, LABEL, SHOWN = "number", "label", "shown"
# Up to so many bytes of partitions are read together.
GROUP_BYTES = 32 * 2**20
FIRST_ROWS, MOST_ROWS = 4096, 1_048_576
# The most bytes of a partition: Arrow counts the bytes of strings in 31 bits. And the share of free
# memory that a task may use, which holds its rows several times.
MAX_BYTES = 2**31 - 1
FREE_PART = 0.1


class UdtfOrder(Struct, frozen=True, kw_only=True):
    """Everything that workers need; sent in the kernel's closure."""

    job: str
    attempt: int
    view: VersionToOpen
    source: VersionToOpen
    function: Function
    how: Partitioning
    # What the partitions are by, for people.
    by: str
    # The function's inputs: names, and expressions in Lance's SQL.
    columns: dict[str, str]
    written: tuple[str, ...]
    # Labels of partitions.
    tasks: tuple[tuple[str, ...], ...]
    # Numbers of partitions that have rows in the view, as a set.
    had: bytes
    knobs: FunctionOptions = FunctionOptions()
    max_rows: int | None = None
    # The most bytes of a partition; None is what the machine has room for.
    max_bytes: int | None = None

    def key(self, number: int) -> str:
        """The identity of a task's work, as 32 characters."""
        what = [self.tasks[number], self.how, self.source.version]
        return hashlib.sha256(json.encode(what)).hexdigest()[:32]


def udtf_kernel(order: UdtfOrder, numbers: Sequence[int]) -> Kernel:
    """Runs in each worker for these tasks."""
    return partial(_run, json.encode(order), tuple(numbers))


def _run(
    encoded: bytes, numbers: Sequence[int], items: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    order = json.decode(encoded, type=UdtfOrder)
    for batch in items:
        for item in batch.column(0).to_pylist():
            yield from guard(partial(_make, order, numbers[item], is_second=is_second_try()))


def _make(order: UdtfOrder, number: int, *, is_second: bool) -> None:
    _Maker(order, number, is_second=is_second).make()


class _Group(NamedTuple):
    """Partitions that are read together, and all their rows, by partition and id."""

    labels: list[str]
    counts: list[int]
    rows: RowPlaces


class _Maker:
    """One try of a task."""

    def __init__(self, order: UdtfOrder, number: int, *, is_second: bool) -> None:
        self._order = order
        self._number = number
        self._is_second = is_second
        self._location = order.view.location
        self._place = self._location.place()
        if is_stopped(self._place, order.job, order.attempt):
            raise Stopped
        self._source = order.source.open(order.job)
        view = order.view.open(order.job)
        self._files = RowFiles(
            view, self._location, order.written, order.job, order.attempt, order.max_rows
        )
        self._max_bytes = order.max_bytes or _free_bytes()
        self._group_rows = FIRST_ROWS

    def make(self) -> None:
        """Write the rows that the function makes of the task's partitions, and a note."""
        order, schema = self._order, self._files.schema
        started = time.perf_counter()
        fields = [
            pa.field(each.column, schema.field(each.column).type, each.nullable)
            for each in order.function.outputs
        ]
        task = FunctionTask(
            self._place,
            order.job,
            order.attempt,
            order.function,
            made_schema(fields),
            order.knobs,
            isolated=self._is_second,
        )
        run = RowsRun(task, self._read(), NUMBER, unit=self._number, label_column=SHOWN)
        had, failed = decode_row_set(order.had), [np.empty(0, np.int64)]
        rows = inserted = 0
        try:
            for keyed in run:
                failed.append(keyed.keys[keyed.failed])
                parents, _, made = flatten(keyed.values)
                if not len(parents):
                    continue
                names = keyed.batch.column(LABEL).take(pa.array(parents))
                columns = [names if n == PARTITION else made.column(n) for n in schema.names]
                self._files.write(pa.record_batch(cast_columns(columns, schema), schema=schema))
                rows += len(parents)
                inserted += int((~had.contains(keyed.keys[parents])).sum())
        finally:
            task.close()
        note = NewRows(
            key=order.key(self._number),
            attempt=order.attempt,
            fragments=self._files.close(),
            rows=rows,
            inserted=inserted,
            calls=run.calls,
            seconds=round(time.perf_counter() - started, 4),
            failed=encode_ids(np.concatenate(failed)),
        )
        write_finished(self._place, order.job, note)

    def _read(self) -> Iterator[pa.RecordBatch]:
        """Partitions, each as a list of its rows."""
        for group in self._groups():
            yield self._read_group(group)

    def _groups(self) -> Iterator[_Group]:
        divided = divide(self._source, self._order.how)
        known = {label: number for number, label in enumerate(divided.labels)}
        numbers = [known[label] for label in self._order.tasks[self._number]]
        order = np.lexsort((divided.rows.ids, divided.numbers))
        starts = np.searchsorted(divided.numbers[order], np.arange(len(divided.labels) + 1))
        at = 0
        while at < len(numbers):
            taken: list[Any] = []
            counts: list[int] = []
            while at < len(numbers) and (not taken or sum(counts) < self._group_rows):
                start, end = starts[numbers[at]], starts[numbers[at] + 1]
                if taken and sum(counts) + end - start > self._group_rows:
                    break
                taken.append(order[start:end])
                counts.append(int(end - start))
                at += 1
            labels = [divided.labels[n] for n in numbers[at - len(taken) : at]]
            yield _Group(labels, counts, divided.rows.take(np.concatenate(taken)))

    def _read_group(self, group: _Group) -> pa.RecordBatch:
        found = pa.concat_batches(self._scan(group))
        self._group_rows = max(1, GROUP_BYTES * found.num_rows // max(1, found.nbytes))
        self._group_rows = min(self._group_rows, MOST_ROWS)
        # The rows came in the order of their places.
        back = np.argsort(as_ids(found.column(ROW_ID)))
        wanted = np.argsort(np.argsort(group.rows.ids))
        found = found.take(pa.array(back[wanted]))
        names = list(self._order.columns)
        rows = pa.StructArray.from_arrays(
            found.columns[: len(names)], fields=_name(found.schema, names)
        )
        offsets = np.concatenate([[0], np.cumsum(group.counts)])
        shown = [self._show(label) for label in group.labels]
        return pa.record_batch(
            [
                pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), rows),
                pa.array([number_of(label) for label in group.labels], pa.int64()),
                pa.array(group.labels, pa.string()),
                pa.array(shown, pa.string()),
            ],
            [PARTITION_ROWS, NUMBER, LABEL, SHOWN],
        )

    def _scan(self, group: _Group) -> list[pa.RecordBatch]:
        """The rows of a group, unordered; no more than there is room for."""
        columns = {str(n): each for n, each in enumerate(self._order.columns.values())}
        found: list[pa.RecordBatch] = []
        size = 0
        ((*units,),) = divide_some(group.rows.fragments, group.rows.offsets, 1)
        for unit in units:
            fragment = get_fragment(self._source, unit.fragment)
            wanted = unit.wanted(fragment.physical_rows)
            for batch in scan_columns(
                self._source, fragment, columns, wanted=wanted, with_row_id=True
            ):
                size += batch.nbytes
                if size > self._max_bytes:
                    raise self._too_large(group)
                found.append(batch.select([*columns, ROW_ID]))
        return found

    def _too_large(self, group: _Group) -> FunctionFailed:
        function = self._order.function
        largest = group.labels[group.counts.index(max(group.counts))]
        return FunctionFailed(
            f"function {function.name} (version {function.version}) cannot be given "
            f"{self._show(largest)}: its {max(group.counts)} rows have more than "
            f"{self._max_bytes} bytes",
            detail="divide the rows by partition_by, name fewer input_columns, or raise the "
            "function's memory",
        )

    def _show(self, label: str) -> str:
        by = self._order.by
        return f"partition {by} = {label}" if by else "the one partition of all rows"


def _name(schema: pa.Schema, names: Sequence[str]) -> list[pa.Field]:
    return [pa.field(name, schema.field(n).type) for n, name in enumerate(names)]


def _free_bytes() -> int:
    """How many bytes a partition may have on this machine."""
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
    except OSError:
        return MAX_BYTES
    free = [int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:")]
    return min(MAX_BYTES, int(free[0] * FREE_PART)) if free else MAX_BYTES
