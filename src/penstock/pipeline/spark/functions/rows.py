"""A function over rows that come in batches, known by a key: a source's row id, or a partition.

What was computed is kept in parts by key, so that another try, whichever rows it is given, calls
the function only for the others.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from penstock.datasets.parts import FAILED, OFFSET, Part, find_parts, read_part
from penstock.datasets.samples import show_inputs
from penstock.datasets.scans import ADDRESS, OFFSET_BITS
from penstock.pipeline.spark.functions.batches import cut, in_order
from penstock.pipeline.spark.functions.errors import Computed, RowFailed, Stopped
from penstock.pipeline.spark.functions.keeping import Keeper
from penstock.pipeline.spark.functions.noting import RowErrors, Where
from penstock.pipeline.spark.functions.task import FunctionTask

if TYPE_CHECKING:
    import pyarrow as pa

# What parts of this kind are found by, beside the number of the function.
KEY = "rows"
# The column with a partition's rows, which is all that a function of partitions is given.
PARTITION_ROWS = "rows"


class Keyed(NamedTuple):
    """Rows as they came, with all of their columns, and what the function made of them."""

    batch: "pa.RecordBatch"
    keys: Any
    # Null in rows that failed.
    values: "pa.RecordBatch"
    failed: Any


class RowsRun:
    """Computes the rows that come; iterate over it once.

    The columns that the function reads are found by name, its key is a column of whole numbers.
    With a column `_rowaddr` errors name the row's place. A job's functions have numbers of their
    own, its tasks units. On another try, rows that are known come first.
    """

    def __init__(
        self,
        task: FunctionTask,
        items: "Iterator[pa.RecordBatch]",
        key_column: str,
        *,
        number: int = 0,
        unit: int = 0,
        rows: int = 0,
        label_column: str | None = None,
    ) -> None:
        self._task = task
        self._items = items
        self._key_column = key_column
        self._label_column = label_column
        self._number, self._unit = number, unit
        is_whole = task.function.kind == "udtf"
        self._inputs = (PARTITION_ROWS,) if is_whole else task.function.inputs
        self._errors = RowErrors(task, self._find)
        self._keeper = Keeper(task, number, KEY, rows, self._errors.tell)
        # Rows with values, whoever computed them; rows that the function was given here.
        self.computed = 0
        self.calls = 0

    def __iter__(self) -> Iterator[Keyed]:
        found = find_parts(self._task.place, self._task.job, self._number, KEY)
        try:
            yield from self._resume(found) if found else self._compute(self._items)
        except Stopped:
            self._errors.forget()
            raise
        finally:
            self._errors.tell()

    def _resume(self, found: list[Part]) -> Iterator[Keyed]:
        import numpy as np
        import pyarrow as pa

        parts = [_KnownRows(self._task, part) for part in found]
        for batch in self._items:
            left = np.ones(batch.num_rows, bool)
            for part in parts:
                rows, places = part.find(self._keys(batch), left)
                if len(rows):
                    left[rows] = False
                    self.computed += len(rows)
                    taken = batch.take(pa.array(rows))
                    values, failed = part.take(places)
                    yield Keyed(taken, self._keys(taken), values, failed)
            if left.any():
                yield from self._compute(iter([batch.filter(pa.array(left))]))

    def _compute(self, items: "Iterator[pa.RecordBatch]") -> Iterator[Keyed]:
        import numpy as np

        task = self._task
        for batch, done in in_order(self._run, cut(items, task.size), task.knobs.threads):
            keys = self._keys(batch)
            task.size.learn(batch.num_rows, done.seconds, done.values.nbytes)
            self.calls += done.calls
            self.computed += batch.num_rows
            self._errors.add(batch, done.failures)
            self._keeper.keep(keys, done, self.computed)
            task.beat(self._unit, self.computed)
            failed = np.zeros(batch.num_rows, bool)
            failed[list(done.failures)] = True
            yield Keyed(batch, keys, done.values, failed)

    def _run(self, batch: "pa.RecordBatch") -> Computed:
        try:
            return self._task.policy.compute(batch.select([*self._inputs, self._key_column]))
        except RowFailed as error:
            raise self._errors.to_failure(batch, error) from error

    def _keys(self, batch: "pa.RecordBatch") -> Any:
        import numpy as np

        return np.asarray(batch.column(self._key_column)).astype(np.int64)

    def _find(self, batch: "pa.RecordBatch", row: int) -> Where:
        key, fragment, offset = int(self._keys(batch)[row]), 0, int(self._keys(batch)[row])
        if self._label_column is not None:
            label = str(batch.column(self._label_column)[row].as_py())
            return Where(key, fragment, offset, label, label)
        text = f"row id {key}"
        if ADDRESS in batch.schema.names:
            address = batch.column(ADDRESS)[row].as_py()
            fragment, offset = address >> 32, address & OFFSET_BITS
            text = f"{text} (fragment {fragment}, offset {offset})"
        values = [batch.column(name)[row].as_py() for name in self._inputs]
        return Where(key, fragment, offset, text, show_inputs(self._inputs, values))


class _KnownRows:
    """A part by the keys of its rows; its values are read when they are needed."""

    def __init__(self, task: FunctionTask, part: Part) -> None:
        self._task = task
        self._part = part
        self._keys: Any = None
        self._order: Any = None

    def find(self, keys: Any, wanted: Any) -> tuple[Any, Any]:
        """Which of the rows that are wanted it has, and their places in it."""
        import numpy as np

        near = wanted & (keys >= self._part.start) & (keys < self._part.end)
        if not near.any():
            return np.empty(0, np.int64), None
        if self._keys is None:
            self._read_keys()
        if not len(self._keys):
            return np.empty(0, np.int64), None
        rows = np.flatnonzero(near)
        places = np.minimum(np.searchsorted(self._keys, keys[rows]), len(self._keys) - 1)
        same = self._keys[places] == keys[rows]
        return rows[same], self._order[places[same]]

    def take(self, places: Any) -> "tuple[pa.RecordBatch, Any]":
        """The values at these places, and which of the rows failed."""
        import pyarrow as pa

        table = self._read().take(pa.array(places)).combine_chunks()
        (batch,) = table.to_batches()
        failed = batch.column(FAILED).to_numpy(zero_copy_only=False)
        return batch.select(self._task.kinds.names), failed

    def _read_keys(self) -> None:
        import numpy as np

        table = self._read()
        keys = np.empty(0, np.int64)
        # Of other types than the columns have now nothing is of use.
        if table.schema.remove(0).remove(0) == self._task.kinds:
            keys = table[OFFSET].to_numpy()
        self._order = np.argsort(keys, kind="stable")
        self._keys = keys[self._order]

    def _read(self) -> "pa.Table":
        return read_part(self._task.place, self._task.job, self._part)
