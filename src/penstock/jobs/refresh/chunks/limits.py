"""A limit of a chunker's view: which of the children that were made are admitted. Pure."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
from msgspec import Struct

from penstock.jobs.refresh.chunks.children import ROW_ID
from penstock.lance.diff.equal import as_ids


class ChunkLimit(Struct, frozen=True):
    """How many rows the view may have, and which rows stay: by source row, in order."""

    rows: int
    # The source rows to call, by id: ids and places, as numbers of eight bytes.
    ids: bytes
    fragments: bytes
    offsets: bytes
    # Source rows that keep their children, and how many rows of the view come before each, and
    # before the end.
    kept: bytes
    before: bytes
    # A source row of which only some children are in the view.
    cut: int | None = None
    cut_rows: int = 0


class Cap:
    """Admits rows while there is room, in the order of source rows and their children."""

    def __init__(self, limit: ChunkLimit) -> None:
        self._limit = limit
        self._kept = np.frombuffer(limit.kept, np.int64)
        self._before = np.frombuffer(limit.before, np.int64)
        self._made = 0
        self._called = 0
        self.counts: list[tuple[int, int]] = []
        self.is_cut = False

    def feed(self, batches: Iterator[pa.RecordBatch], size: Any) -> Iterator[pa.RecordBatch]:
        """Yield rows, a few at a time, until the view is full."""
        for batch in batches:
            ids, at = as_ids(batch.column(ROW_ID)), 0
            while at < len(ids):
                id = int(ids[at])
                # The existing children of a cut row may be enough.
                room = self._room(id) - (self._limit.cut_rows if id == self._limit.cut else 0)
                if room <= 0:
                    self.is_cut = True
                    return
                # One by one until it is known how many children a row makes.
                fitting = -(-room * self._called // max(1, self._made)) if self._called else 1
                count = max(1, min(fitting, size.rows, len(ids) - at))
                size.rows = count
                yield batch.slice(at, count)
                at += count

    def take(self, keys: Any, parents: Any, numbers: Any) -> Any:
        """Which of the children are admitted; called in the order of the source rows."""
        counts = np.bincount(parents, minlength=len(keys))
        allowed = np.zeros(len(keys), np.int64)
        for row, (key, count) in enumerate(zip(keys.tolist(), counts.tolist(), strict=True)):
            fitting = min(count, max(0, self._room(key)))
            self.is_cut = self.is_cut or fitting < count
            self._made += fitting
            self.counts.append((key, fitting))
            allowed[row] = fitting
        self._called += len(keys)
        return numbers < allowed[parents]

    def _room(self, id: int) -> int:
        """How many rows fit before a source row's own."""
        before = int(self._before[np.searchsorted(self._kept, id)])
        return self._limit.rows - before - self._made
