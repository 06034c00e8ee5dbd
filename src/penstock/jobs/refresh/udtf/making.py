"""Give partitions to a function in a Python worker, and write or digest the rows that it makes.

Where partitions come from is up to the caller: `kernel.py` reads them by Lance, `spark_kernel.py`
gets them from Spark.
"""

import hashlib
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
from msgspec import Struct, json

from penstock.errors import FunctionFailed
from penstock.jobs.engine.checkpoints import is_stopped
from penstock.jobs.engine.finished import NewRows, encode_ids, write_finished
from penstock.jobs.engine.guard import Stopped
from penstock.jobs.functions.children import flatten, made_schema
from penstock.jobs.functions.rows import PARTITION_ROWS, RowsRun
from penstock.jobs.functions.task import FunctionOptions, FunctionTask
from penstock.jobs.refresh.chunks.kernel import VersionToOpen, cast_columns
from penstock.jobs.refresh.row_files import RowFiles
from penstock.jobs.refresh.udtf.partitions import Partitioning, number_of
from penstock.lance.diff.digests import digest_rows
from penstock.lance.diff.row_sets import decode_row_set
from penstock.model.functions import Function
from penstock.model.views import PARTITION

NUMBER, LABEL, SHOWN = "number", "label", "shown"
# Up to so many bytes of partitions are read together.
GROUP_BYTES = 32 * 2**20
# The most bytes of a partition: Arrow counts the bytes of strings in 31 bits. And the share of free
# memory that a task may use, which holds its rows several times.
MAX_BYTES = 2**31 - 1
FREE_PART = 0.1


class UdtfOrder(Struct, frozen=True, kw_only=True):
    """Everything that workers need; sent in the kernel's closure."""

    job: str
    attempt: int
    view: VersionToOpen
    function: Function
    # What the partitions are by, for people.
    by: str
    written: tuple[str, ...]
    # Labels of partitions.
    tasks: tuple[tuple[str, ...], ...]
    # Numbers of partitions that have rows in the view, as a set.
    had: bytes
    # For Lance: the source, how its rows are partitioned, and the function's inputs by name.
    source: VersionToOpen | None = None
    how: Partitioning = Partitioning()
    columns: dict[str, str] = {}
    knobs: FunctionOptions = FunctionOptions()
    max_rows: int | None = None
    # The most bytes of a partition; None is what the machine has room for.
    max_bytes: int | None = None
    # Whether rows are only digested, to compare them with the view's: nothing is written, and the
    # function is called whatever is known.
    is_check: bool = False

    def key(self, number: int) -> str:
        """The identity of a task's work, as 32 characters."""
        version = None if self.source is None else self.source.version
        what = [self.tasks[number], self.how, version, self.is_check]
        return hashlib.sha256(json.encode(what)).hexdigest()[:32]

    def show(self, label: str) -> str:
        """A partition, for people."""
        return f"partition {self.by} = {label}" if self.by else "the one partition of all rows"


class PartitionMaker:
    """One try of a task."""

    def __init__(self, order: UdtfOrder, number: int, *, is_second: bool) -> None:
        self._order = order
        self._number = number
        self._is_second = is_second
        location = order.view.location
        self._place = location.place()
        if is_stopped(self._place, order.job, order.attempt):
            raise Stopped
        view = order.view.open(order.job)
        self._files = RowFiles(
            view, location, order.written, order.job, order.attempt, order.max_rows
        )
        self.max_bytes = order.max_bytes or _free_bytes()

    def make(self, partitions: Iterator[pa.RecordBatch]) -> None:
        """Write the rows that the function makes of partitions, and a note."""
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
        finders = () if order.is_check else None
        run = RowsRun(
            task, partitions, NUMBER, unit=self._number, label_column=SHOWN, finders=finders
        )
        had, failed, digests = decode_row_set(order.had), [np.empty(0, np.int64)], [b""]
        rows = inserted = 0
        try:
            for keyed in run:
                failed.append(keyed.keys[keyed.failed])
                parents, _, made = flatten(keyed.values)
                if not len(parents):
                    continue
                names = keyed.batch.column(LABEL).take(pa.array(parents))
                columns = [names if n == PARTITION else made.column(n) for n in schema.names]
                batch = pa.record_batch(cast_columns(columns, schema), schema=schema)
                if order.is_check:
                    digests.append(digest_rows(batch.columns, batch.num_rows).tobytes())
                else:
                    self._files.write(batch)
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
            digests=b"".join(digests),
        )
        write_finished(self._place, order.job, note)

    def to_batch(
        self, labels: Sequence[str], counts: Sequence[int], rows: pa.StructArray
    ) -> pa.RecordBatch:
        """Partitions in the form that the function's run takes: each as a list of its rows."""
        offsets = np.concatenate([[0], np.cumsum(counts)])
        return pa.record_batch(
            [
                pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), rows),
                pa.array([number_of(label) for label in labels], pa.int64()),
                pa.array(labels, pa.string()),
                pa.array([self._order.show(label) for label in labels], pa.string()),
            ],
            [PARTITION_ROWS, NUMBER, LABEL, SHOWN],
        )

    def too_large(self, labels: Sequence[str], counts: Sequence[int]) -> FunctionFailed:
        """Partitions that there is no room for."""
        function = self._order.function
        largest = labels[counts.index(max(counts))]
        return FunctionFailed(
            f"function {function.name} (version {function.version}) cannot be given "
            f"{self._order.show(largest)}: its {max(counts)} rows have more than "
            f"{self.max_bytes} bytes",
            detail="divide the rows by partition_by, name fewer input_columns, or raise the "
            "function's memory",
        )


def _free_bytes() -> int:
    """How many bytes a partition may have on this machine."""
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
    except OSError:
        return MAX_BYTES
    free = [int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:")]
    return min(MAX_BYTES, int(free[0] * FREE_PART)) if free else MAX_BYTES
