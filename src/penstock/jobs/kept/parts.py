"""The parts of a store, found by the keys and inputs of rows. All of it blocks."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
import pyarrow as pa

from penstock.jobs.kept.store import OURS, Part, Store, find_parts, read_part
from penstock.lance.diff.digests import digest_rows

# How many rows are read at once.
STEP_ROWS = 1024


class FoundRows(NamedTuple):
    """Rows of a batch that are kept, by their places in it, and what was made of them."""

    rows: Any
    values: pa.RecordBatch
    failed: Any


class Finder(Protocol):
    """Somebody who knows what a function makes of rows."""

    def __len__(self) -> int: ...

    def find(self, keys: Any, columns: Sequence[pa.Array], wanted: Any) -> list[FoundRows]: ...


class KeptParts:
    """The parts that are there when a task begins; they are read when they are needed."""

    def __init__(self, store: Store, kinds: pa.Schema, *, own_only: bool = False) -> None:
        parts = find_parts(store.place, store.folder)
        if own_only:
            parts = [part for part in parts if part.writer == store.writer]
        self._parts = [KeptPart(store, part, kinds) for part in parts]
        self._starts = np.array([part.start for part in parts], np.int64)
        self._ends = np.array([part.end for part in parts], np.int64)

    def __len__(self) -> int:
        return len(self._parts)

    def find(self, keys: Any, columns: Sequence[pa.Array], wanted: Any) -> list[FoundRows]:
        """Those of the rows that are wanted which are kept, given keys and inputs of all."""
        found: list[FoundRows] = []
        near = self.near(keys[wanted])
        if not near:
            return found
        inputs, left = digest_rows(columns, len(keys)), wanted.copy()
        for part in near:
            rows, places = part.find(keys, inputs, left)
            if len(rows) and (values := part.read(places)) is not None:
                left[rows] = False
                found.append(FoundRows(rows, *values))
        return found

    def near(self, keys: Any) -> "list[KeptPart]":
        """The parts that may have rows with some of these keys."""
        if not (len(keys) and self._parts):
            return []
        near = np.flatnonzero((self._starts <= keys.max()) & (self._ends > keys.min()))
        return [self._parts[number] for number in near.tolist()]


class KeptPart:
    """A part, and the keys of its rows as soon as somebody has asked for them."""

    def __init__(self, store: Store, part: Part, kinds: pa.Schema) -> None:
        self._store, self._part, self._kinds = store, part, kinds
        self._keys: Any = None

    @property
    def keys(self) -> Any:
        """The keys of the rows that can be used, in order."""
        if self._keys is None:
            self._load()
        return self._keys

    def find(self, keys: Any, inputs: Any, wanted: Any) -> tuple[Any, Any]:
        """Those of the rows that are wanted which it has, and where it has them."""
        rows = np.flatnonzero(wanted & (keys >= self._part.start) & (keys < self._part.end))
        if not (len(rows) and len(self.keys)):
            return rows[:0], rows[:0]
        at = np.minimum(np.searchsorted(self._keys, keys[rows]), len(self._keys) - 1)
        same = (self._keys[at] == keys[rows]) & (self._inputs[at] == inputs[rows])
        return rows[same], self._order[at[same]]

    def read(self, places: Any) -> tuple[pa.RecordBatch, Any] | None:
        """The values at some places, and which of the rows failed; None when the part is gone."""
        try:
            table = read_part(self._store, self._part)
        except FileNotFoundError:
            return None
        return self._take(table, places)

    def stream(self, places: Any) -> Iterator[tuple[pa.RecordBatch, Any]]:
        """The same in steps; raises FileNotFoundError when the part is gone."""
        table = read_part(self._store, self._part)
        for at in range(0, len(places), STEP_ROWS):
            yield self._take(table, places[at : at + STEP_ROWS])

    def _take(self, table: pa.Table, places: Any) -> tuple[pa.RecordBatch, Any]:
        taken = table.take(pa.array(places)).combine_chunks()
        failed = taken.column(OURS - 1).to_numpy()
        return to_batch(taken.select(range(OURS, taken.num_columns)), self._kinds), failed

    def _load(self) -> None:
        """Read the keys; nothing can be used of a part that is gone or has values of other types.

        What another job failed on may go well now.
        """
        self._keys = self._inputs = self._order = np.empty(0, np.int64)
        try:
            table = read_part(self._store, self._part)
        except FileNotFoundError:
            return
        if table.schema.types[OURS:] != self._kinds.types:
            return
        keys, inputs, failed = (table.column(n).to_numpy() for n in range(OURS))
        is_ours = self._part.writer == self._store.writer
        places = np.arange(len(keys)) if is_ours else np.flatnonzero(~failed)
        self._order = places[np.argsort(keys[places], kind="stable")]
        self._keys, self._inputs = keys[self._order], inputs[self._order]


def to_batch(table: pa.Table, kinds: pa.Schema) -> pa.RecordBatch:
    """The columns of a function, which are always in its own order, by the names they have now."""
    (batch,) = table.rename_columns(kinds.names).cast(kinds).combine_chunks().to_batches()
    return batch
