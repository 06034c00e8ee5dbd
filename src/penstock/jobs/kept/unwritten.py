"""Values that are in memory only, until they are worth a part that a later try finds."""

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from penstock.crash import crash_point
from penstock.jobs.functions.errors import Computed
from penstock.jobs.functions.task import FunctionTask
from penstock.jobs.kept.parts import write_part

if TYPE_CHECKING:
    import pyarrow as pa

# Values that wait for a part are in memory.
MAX_WAITING_BYTES = 64 * 2**20
# Values are kept for a part from the time on at which the work would be finished too late, by this
# part of the interval.
SOON = 0.5
# Parts that are written early, for their size, may take so much of the time.
MAX_OVERHEAD = 0.04


class Keeper:
    """The values of one run that wait for a part."""

    def __init__(
        self,
        task: FunctionTask,
        number: int,
        key: str,
        rows: int,
        before: Callable[[], None],
        find_ids: Callable[[Any], Any] | None = None,
    ) -> None:
        self._task = task
        # The row ids of keys, when they are not what rows are known by.
        self._find_ids = find_ids
        # What the parts are found by, how many rows there are, and what comes before each part.
        self._number, self._key = number, key
        self._rows = rows
        self._before = before
        self._waiting: list[tuple[Any, Any, pa.RecordBatch]] = []
        self._waiting_bytes = 0
        self._started = self._flushed = time.monotonic()
        self._writing_seconds = 0.0

    def keep(self, keys: Any, done: Computed, computed: int) -> None:
        """Remember values by key; so many rows were computed up to now."""
        failed = np.zeros(len(keys), bool)
        failed[list(done.failures)] = True
        self._waiting.append((keys, failed, done.values))
        self._waiting_bytes += done.values.nbytes
        now = time.monotonic()
        if self._ends_soon(computed):
            # Nothing is written; only a stop would have use for what is waiting.
            if self._waiting_bytes > MAX_WAITING_BYTES:
                self._forget()
        elif now - self._flushed >= self._task.knobs.flush_seconds:
            self.flush()
        elif self._waiting_bytes > MAX_WAITING_BYTES:
            # So much in so little time: to compute it again may cost less than to keep it.
            if self._writing_seconds < MAX_OVERHEAD * (now - self._started):
                self.flush()
            else:
                self._forget()

    def _ends_soon(self, computed: int) -> bool:
        """Whether all will be finished before a part is due, going by the rows so far."""
        elapsed = time.monotonic() - self._started
        expected = elapsed * self._rows / max(1, computed)
        return expected < SOON * self._task.knobs.flush_seconds

    def flush(self) -> None:
        """Leave what is waiting as a part."""
        if not self._waiting:
            return
        started = time.monotonic()
        self._before()
        keys = np.concatenate([keys for keys, _, _ in self._waiting])
        write_part(
            self._task.place,
            self._task.kept,
            self._number,
            self._key,
            self._task.attempt,
            keys,
            np.concatenate([failed for _, failed, _ in self._waiting]),
            [values for _, _, values in self._waiting],
            None if self._find_ids is None else self._find_ids(keys),
            self._task.origin,
            self._task.job,
        )
        crash_point("part written")
        self._forget()
        self._flushed = time.monotonic()
        self._writing_seconds += self._flushed - started

    def _forget(self) -> None:
        self._waiting = []
        self._waiting_bytes = 0
