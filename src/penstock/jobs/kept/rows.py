"""What earlier tries, attempts and jobs made of rows with the same inputs, and what this one does.

Values are kept as soon as that costs little against what it took to make them.
"""

import contextlib
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
import pyarrow as pa

from penstock.crash import crash_point
from penstock.errors import PenstockError
from penstock.jobs.functions.errors import Computed
from penstock.jobs.functions.task import FunctionTask
from penstock.jobs.kept import values as kept
from penstock.lance.diff.digests import digest_rows

# Values that wait, with what they were made of, are in memory.
MAX_WAITING_BYTES = 64 * 2**20
# The part of the time that may be spent on keeping.
MAX_OVERHEAD = 0.04
# What a part takes, about: to begin with, by store, and for each row and byte.
LOCAL_SECONDS, REMOTE_SECONDS = 0.002, 0.03
ROW_SECONDS, BYTE_SECONDS = 2e-6, 1e-8
# So many small parts of one task become one.
MAX_SMALL, MAX_SMALL_BYTES = 32, 16 * 2**20


class Known(NamedTuple):
    """Rows of a batch that are known, by their places in it, and what was made of them."""

    rows: Any
    values: "pa.RecordBatch"
    failed: Any


class Knowing(Protocol):
    """Somebody who knows what a function makes of rows."""

    def __len__(self) -> int: ...

    def find(self, keys: Any, columns: "Sequence[pa.Array]", wanted: Any) -> list[Known]: ...


class KnownRows:
    """The values that are kept for a function; they are read when they are needed."""

    def __init__(self, task: FunctionTask, store: str) -> None:
        self._task = task
        parts = kept.find_parts(task.place, store)
        self._parts = [_KnownPart(task, store, part) for part in parts]
        self._starts = np.array([part.start for part in parts], np.int64)
        self._ends = np.array([part.end for part in parts], np.int64)

    def __len__(self) -> int:
        return len(self._parts)

    def find(self, keys: Any, columns: "Sequence[pa.Array]", wanted: Any) -> list[Known]:
        """Those of the rows that are wanted which are known, given keys and inputs of all."""
        found: list[Known] = []
        if not wanted.any():
            return found
        near = np.flatnonzero((self._starts <= keys.max()) & (self._ends > keys.min()))
        if not len(near):
            return found
        inputs, left = digest_rows(columns, len(keys)), wanted.copy()
        for number in near.tolist():
            known = self._parts[number].find(keys, inputs, left)
            if known is not None:
                left[known.rows] = False
                found.append(known)
        return found


def look_for_known(task: FunctionTask, store: str) -> KnownRows:
    """What was kept when the task began."""
    if task.known is None:
        task.known = KnownRows(task, store)
    return task.known


class _KnownPart:
    """A part by the keys of its rows."""

    def __init__(self, task: FunctionTask, store: str, part: kept.Part) -> None:
        self._task, self._store, self._part = task, store, part
        self._is_ours = part.writer == kept.name_writer(task.job)
        self._keys: Any = None

    def find(self, keys: Any, inputs: Any, wanted: Any) -> Known | None:
        """Those of the rows that are wanted which it has."""
        rows = np.flatnonzero(wanted & (keys >= self._part.start) & (keys < self._part.end))
        if not len(rows):
            return None
        table = None
        if self._keys is None:
            table = self._read_keys()
        if not len(self._keys):
            return None
        places = np.minimum(np.searchsorted(self._keys, keys[rows]), len(self._keys) - 1)
        same = (self._keys[places] == keys[rows]) & (self._inputs[places] == inputs[rows])
        if not same.any():
            return None
        if table is None:
            table = kept.read_part(self._task.place, self._store, self._part)
        if table is None:
            return None
        taken = table.take(pa.array(self._order[places[same]])).combine_chunks()
        (batch,) = taken.to_batches()
        failed = batch.column(kept.FAILED).to_numpy(zero_copy_only=False)
        return Known(rows[same], batch.select(self._task.kinds.names), failed)

    def _read_keys(self) -> "pa.Table | None":
        table = kept.read_part(self._task.place, self._store, self._part)
        self._keys = self._inputs = np.empty(0, np.int64)
        if table is None:
            return None
        keys, is_used = table[kept.KEY].to_numpy(), np.ones(len(table), bool)
        if not self._is_ours:
            # Another job tries failed rows again, as a refresh always does.
            is_used = ~table[kept.FAILED].to_numpy()
        places = np.flatnonzero(is_used)
        self._order = places[np.argsort(keys[places], kind="stable")]
        self._keys = keys[self._order]
        self._inputs = table[kept.INPUTS].to_numpy()[self._order]
        return table


class _Made(NamedTuple):
    """A batch that waits."""

    keys: Any
    columns: "Sequence[pa.Array]"
    failed: Any
    values: "pa.RecordBatch"


class RowKeeper:
    """What one run makes, until it is kept."""

    def __init__(self, task: FunctionTask, store: str, before: Callable[[], None]) -> None:
        self._task, self._store = task, store
        self._writer = kept.name_writer(task.job)
        # What comes before each part.
        self._before = before
        self._waiting: list[_Made] = []
        self._seconds, self._bytes, self._rows = 0.0, 0, 0
        self._flushed = time.monotonic()
        # Parts of this run that are small, with their rows.
        self._small: list[tuple[str, pa.Table]] = []

    def keep(self, keys: Any, columns: "Sequence[pa.Array]", done: Computed) -> None:
        """Remember what was made of rows with these inputs."""
        failed = np.zeros(len(keys), bool)
        failed[list(done.failures)] = True
        self._waiting.append(_Made(keys, columns, failed, done.values))
        self._seconds += done.seconds
        self._rows += len(keys)
        self._bytes += done.values.nbytes + sum(each.nbytes for each in columns)
        late = time.monotonic() - self._flushed >= self._task.knobs.flush_seconds
        if self._is_worth_it() or (late and self._bytes <= MAX_WAITING_BYTES):
            self.flush()
        elif self._bytes > MAX_WAITING_BYTES:
            # So much in so little time: to make it again costs less than to keep it.
            self._forget()

    def finish(self) -> None:
        """Keep what waits, if it is worth it: others of the job may not be finished."""
        if self._waiting and self._is_worth_it():
            self.flush()

    def rescue(self) -> None:
        """Keep what waits when there will be no more; that it ended is what has to be told."""
        if self._waiting:
            with contextlib.suppress(OSError, PenstockError):
                self.flush()

    def flush(self) -> None:
        """Keep what waits."""
        self._before()
        made, place = self._waiting, self._task.place
        table = kept.make_table(
            np.concatenate([each.keys for each in made]),
            np.concatenate([digest_rows(each.columns, len(each.keys)) for each in made]),
            np.concatenate([each.failed for each in made]),
            [each.values for each in made],
        )
        self._small.append((kept.write_part(place, self._store, self._writer, table), table))
        crash_point("part written")
        self._forget()
        self._flushed = time.monotonic()
        self._join_small()

    def _is_worth_it(self) -> bool:
        first = LOCAL_SECONDS if self._task.place.is_local else REMOTE_SECONDS
        price = first + self._rows * ROW_SECONDS + self._bytes * BYTE_SECONDS
        return price <= self._seconds * MAX_OVERHEAD

    def _join_small(self) -> None:
        """Make one part of many small ones, so that whoever comes next has less to open."""
        if sum(table.nbytes for _, table in self._small) > MAX_SMALL_BYTES:
            self._small = []
        if len(self._small) < MAX_SMALL:
            return
        whole = pa.concat_tables([table for _, table in self._small]).combine_chunks()
        kept.write_part(self._task.place, self._store, self._writer, whole)
        names = [name for name, _ in self._small]
        self._small = []
        kept.remove_parts(self._task.place, self._store, names)

    def _forget(self) -> None:
        self._waiting = []
        self._seconds, self._bytes, self._rows = 0.0, 0, 0
