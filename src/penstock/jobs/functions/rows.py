"""A function over rows that come in batches, known by a key: a source's row id, or a partition.

What was computed is kept, so that whoever comes next, whichever rows are given, calls the function
only for rows that are not known with these inputs.
"""

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from penstock.jobs.engine.guard import Stopped
from penstock.jobs.functions.batches import cut, in_order
from penstock.jobs.functions.errors import BatchValues, RowFailed
from penstock.jobs.functions.row_errors import FailedRow, RowErrors
from penstock.jobs.functions.task import FunctionTask
from penstock.jobs.kept.keeper import Keeper
from penstock.jobs.kept.parts import Finder
from penstock.lance.read.samples import show_inputs
from penstock.lance.read.scans import ADDRESS, OFFSET_BITS

# The column with a partition's rows, which is all that a function of partitions is given.
PARTITION_ROWS = "rows"


class KeyedRows(NamedTuple):
    """Rows as they came, with all of their columns, and what the function made of them."""

    batch: pa.RecordBatch
    keys: Any
    # Null in rows that failed.
    values: pa.RecordBatch
    failed: Any


class RowsRun:
    """Computes the rows that come; iterate over it once.

    The columns that the function reads are found by name, its key is a column of whole numbers.
    With a column `_rowaddr` errors name the row's place. The unit is the number of the job's task.
    Those who know rows are asked first (None: the task's own store). Of each batch, rows that are
    known come first, unless they have to stay in order. What comes last is kept if it is worth it,
    or in any case.
    """

    def __init__(
        self,
        task: FunctionTask,
        items: Iterator[pa.RecordBatch],
        key_column: str,
        *,
        unit: int = 0,
        label_column: str | None = None,
        in_order: bool = False,
        finders: Sequence[Finder] | None = None,
        input_columns: Sequence[str] | None = None,
        keep_all: bool = False,
        count_done: Callable[[], int] | None = None,
    ) -> None:
        self._task = task
        self._items = items
        self._key_column = key_column
        self._label_column = label_column
        self._unit, self._in_order = unit, in_order
        self._finders = finders
        is_whole = task.function.kind == "udtf"
        self._names = (PARTITION_ROWS,) if is_whole else task.function.inputs
        self._inputs = self._names if input_columns is None else input_columns
        self._errors = RowErrors(task, self._find)
        # Rows with values, whoever computed them; rows that the function was given here.
        self.computed = 0
        self.calls = 0
        # Rows that are null because an input is.
        self.rows_null = 0
        self._keep_all = keep_all
        # How far the unit is, if others fill rows of it as well.
        self._count_done = count_done or (lambda: self.computed)
        # Batches that end early are kept by the threads that computed them.
        self._keeping = threading.Lock()
        self.keeper = Keeper(task.store, task.knobs.flush_seconds, self._errors.tell)

    def __iter__(self) -> Iterator[KeyedRows]:
        asked = (self._task.parts,) if self._finders is None else self._finders
        finders = [each for each in asked if len(each)]
        try:
            yield from self._resume(finders) if finders else self._compute(self._items)
            self.keeper.finish(everything=self._keep_all)
        except Stopped:
            self._errors.forget()
            self.keeper.rescue()
            raise
        except BaseException:
            self.keeper.rescue()
            raise
        finally:
            self._errors.tell()

    def _resume(self, finders: Sequence[Finder]) -> Iterator[KeyedRows]:
        for batch in self._items:
            left, pieces = np.ones(batch.num_rows, bool), list[KeyedRows]()
            for each in finders:
                for found in each.find(self._keys(batch), self._columns(batch), left):
                    left[found.rows] = False
                    self.computed += len(found.rows)
                    taken = batch.take(pa.array(found.rows))
                    pieces.append(KeyedRows(taken, self._keys(taken), found.values, found.failed))
            if not self._in_order:
                yield from pieces
                pieces = []
            if left.any():
                rest = self._compute(iter([batch.filter(pa.array(left))]))
                if pieces:
                    pieces += rest
                else:
                    yield from rest
            if pieces:
                yield _sort(pieces)

    def _compute(self, items: Iterator[pa.RecordBatch]) -> Iterator[KeyedRows]:
        task = self._task
        for batch, done in in_order(self._run, self._begin(items), task.threads):
            keys = self._keys(batch)
            if given := batch.num_rows - done.rows_null:
                task.size.learn(given, done.seconds, done.values.nbytes)
            self.calls += done.calls
            self.rows_null += done.rows_null
            self.computed += batch.num_rows
            self._errors.add(batch, done.failures)
            failed = np.zeros(batch.num_rows, bool)
            failed[list(done.failures)] = True
            with self._keeping:
                self.keeper.keep(keys, self._columns(batch), done.values, failed, done.seconds)
            task.beat(self._unit, self._count_done())
            yield KeyedRows(batch, keys, done.values, failed)

    def _begin(self, items: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in cut(items, self._task.size, self._find_called):
            self._task.begin_batch()
            yield batch

    def _run(self, batch: pa.RecordBatch) -> BatchValues:
        started = time.perf_counter()
        try:
            return self._task.policy.compute(batch.select([*self._inputs, self._key_column]))
        except (RowFailed, Stopped) as error:
            if error.partial is not None:
                self._keep_partial(batch, error.partial, time.perf_counter() - started)
            if isinstance(error, Stopped):
                raise
            raise self._errors.to_failure(batch, error) from error

    def _keep_partial(
        self, batch: pa.RecordBatch, partial: tuple[Any, pa.RecordBatch], seconds: float
    ) -> None:
        """Keep what a batch has that does not come to its end."""
        rows, values = partial
        if len(rows):
            made = batch.take(pa.array(rows))
            failed = np.zeros(len(rows), bool)
            with self._keeping:
                self.keeper.keep(self._keys(made), self._columns(made), values, failed, seconds)

    def _find_called(self, batch: pa.RecordBatch) -> Any:
        return self._task.policy.find_called(batch.select(self._inputs))

    def _columns(self, batch: pa.RecordBatch) -> list[pa.Array]:
        """What the function is given."""
        return [batch.column(name) for name in self._inputs]

    def _keys(self, batch: pa.RecordBatch) -> Any:
        return np.asarray(batch.column(self._key_column)).astype(np.int64)

    def _find(self, batch: pa.RecordBatch, row: int) -> FailedRow:
        key, fragment, offset = int(self._keys(batch)[row]), 0, int(self._keys(batch)[row])
        if self._label_column is not None:
            label = str(batch.column(self._label_column)[row].as_py())
            return FailedRow(key, fragment, offset, label, label)
        text = f"row id {key}"
        if ADDRESS in batch.schema.names:
            address = batch.column(ADDRESS)[row].as_py()
            fragment, offset = address >> 32, address & OFFSET_BITS
            text = f"{text} (fragment {fragment}, offset {offset})"
        values = [batch.column(name)[row].as_py() for name in self._inputs]
        return FailedRow(key, fragment, offset, text, show_inputs(self._names, values))


def _sort(pieces: Sequence[KeyedRows]) -> KeyedRows:
    """Several pieces as one, by key."""
    keys = np.concatenate([each.keys for each in pieces])
    order = np.argsort(keys, kind="stable")
    return KeyedRows(
        pa.concat_batches([each.batch for each in pieces]).take(pa.array(order)),
        keys[order],
        pa.concat_batches([each.values for each in pieces]).take(pa.array(order)),
        np.concatenate([each.failed for each in pieces])[order],
    )
