"""Values that a run has made, in memory until they are worth a part of the store.

They are kept as soon as that costs little against what it took to make them.
"""

import contextlib
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from penstock.crash import crash_point
from penstock.errors import PenstockError
from penstock.jobs.kept.store import Store, make_table, remove_parts, write_part
from penstock.lance.diff.digests import digest_rows

# Values that wait, with what they were made of, are in memory.
MAX_WAITING_BYTES = 64 * 2**20
# The part of the time that may be spent on keeping: at any time, and when it is due.
MAX_OVERHEAD, MAX_DUE_OVERHEAD = 0.04, 0.2
# What a part takes, about: to begin with, by store, for each row and each byte of its values, and
# for each byte that is digested.
LOCAL_SECONDS, REMOTE_SECONDS = 0.002, 0.03
ROW_SECONDS, BYTE_SECONDS, DIGEST_SECONDS = 4e-6, 1e-8, 3e-9
# So many small parts of one run become one.
MAX_SMALL, MAX_SMALL_BYTES = 32, 16 * 2**20


class _Batch(NamedTuple):
    """A batch that waits; its inputs are columns as long as they are not digested."""

    keys: Any
    columns: Sequence[pa.Array]
    digests: Any
    failed: Any
    values: pa.RecordBatch


class Keeper:
    """What one run makes, until it is kept."""

    def __init__(self, store: Store, flush_seconds: float, before: Callable[[], None]) -> None:
        self._store = store
        self._flush_seconds = flush_seconds
        # What comes before each part.
        self._before = before
        self._waiting: list[_Batch] = []
        self._seconds = self._price = 0.0
        self._bytes = 0
        self._flushed = time.monotonic()
        # Parts of this run, and those of them that are small, with their rows.
        self._names: set[str] = set()
        self._small: list[tuple[str, pa.Table]] = []

    def keep(
        self,
        keys: Any,
        columns: Sequence[pa.Array],
        values: pa.RecordBatch,
        failed: Any,
        seconds: float,
    ) -> None:
        """Take what was made, in so many seconds, of rows with these keys and inputs."""
        size, digests = sum(each.nbytes for each in columns), None
        price = len(keys) * ROW_SECONDS + size * DIGEST_SECONDS
        if price <= seconds * MAX_OVERHEAD:
            # So that wide inputs do not stay in memory.
            digests, columns, size = digest_rows(columns, len(keys)), (), 8 * len(keys)
        self._waiting.append(_Batch(keys, columns, digests, failed, values))
        self._seconds += seconds
        self._price += price + values.nbytes * BYTE_SECONDS
        self._bytes += values.nbytes + size
        if self._is_worth_it():
            self.flush()
        elif self._bytes > MAX_WAITING_BYTES:
            # So much in so little time: to make it again costs less than to keep it.
            self._forget()

    def finish(self, *, everything: bool = False) -> None:
        """At the end of the run: keep what waits, if it is worth it, or in any case."""
        if self._waiting and (everything or self._is_worth_it()):
            self.flush()

    def rescue(self) -> None:
        """Keep what waits when the run fails; its failure is what has to be told."""
        if self._waiting:
            with contextlib.suppress(OSError, PenstockError):
                self.flush()

    def flush(self) -> None:
        """Keep what waits."""
        self._before()
        batches = self._waiting
        table = make_table(
            np.concatenate([each.keys for each in batches]),
            np.concatenate([_digest(each) for each in batches]),
            np.concatenate([each.failed for each in batches]),
            [each.values for each in batches],
        )
        self._write(table)
        crash_point("part written")
        self._forget()
        self._flushed = time.monotonic()
        self._join_small()

    def remove(self) -> None:
        """Remove the parts of the run: all that they have is in a finished file."""
        remove_parts(self._store, sorted(self._names))
        self._names, self._small = set(), []

    def _is_worth_it(self) -> bool:
        if self._flush_seconds == 0:
            return True
        first = LOCAL_SECONDS if self._store.place.is_local else REMOTE_SECONDS
        is_late = time.monotonic() - self._flushed >= self._flush_seconds
        is_due = is_late or self._bytes > MAX_WAITING_BYTES
        most = MAX_DUE_OVERHEAD if is_due else MAX_OVERHEAD
        return first + self._price <= self._seconds * most

    def _write(self, table: pa.Table) -> None:
        name = write_part(self._store, table)
        self._names.add(name)
        self._small.append((name, table))

    def _join_small(self) -> None:
        """Make one part of many small ones, so that whoever comes next has less to open."""
        if sum(table.nbytes for _, table in self._small) > MAX_SMALL_BYTES:
            self._small = []
        if len(self._small) < MAX_SMALL:
            return
        names = [name for name, _ in self._small]
        self._write(pa.concat_tables([table for _, table in self._small]).combine_chunks())
        self._small = []
        remove_parts(self._store, names)
        self._names.difference_update(names)

    def _forget(self) -> None:
        self._waiting = []
        self._seconds = self._price = 0.0
        self._bytes = 0


def _digest(batch: _Batch) -> Any:
    if batch.digests is not None:
        return batch.digests
    return digest_rows(batch.columns, len(batch.keys))
