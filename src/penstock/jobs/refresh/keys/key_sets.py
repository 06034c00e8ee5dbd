"""Sets of keys, compared like Spark does when it groups. Everything here is pure.

NaN is one value, and so are null, and 0.0 with -0.0. Integers of all widths are equal by their
values, as Spark widens what it compares. Other values are compared in Spark's precision: what
it does not distinguish, such as nanoseconds, is equal here too.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as kinds

from penstock.jobs.spark.types import cast_in, cast_out
from penstock.lance.diff.masks import Mask
from penstock.lance.diff.row_sets import Ids


class KeySet:
    """A set of keys, given as arrays, one per column, whose rows belong together."""

    def __init__(self, keys: Sequence[pa.Array]) -> None:
        self._kinds = _to_spark(keys).schema
        # For each column: its values, and which combinations with earlier columns exist.
        self._values: list[pa.Array] = []
        self._seen: list[Any] = []
        place = np.zeros(len(keys[0]), np.int64)
        for column in self._normal(keys):
            values = column.unique()
            codes = place * max(1, len(values)) + _find(column, values)
            seen, first, place = np.unique(codes, return_index=True, return_inverse=True)
            self._values.append(values)
            self._seen.append(seen)
        rows = pa.array(first)
        self.keys = [each.take(rows) for each in _to_spark(keys).columns]

    def __len__(self) -> int:
        return len(self.keys[0])

    def contains(self, keys: Sequence[pa.Array]) -> Mask:
        """Whether each row has one of the keys."""
        found: Mask = self.find(keys) >= 0
        return found

    def find(self, keys: Sequence[pa.Array]) -> Ids:
        """The place of each row's key in the set, or -1."""
        found = np.ones(len(keys[0]), bool)
        place = np.zeros(len(keys[0]), np.int64)
        if not len(self):
            return place - 1
        for column, values, seen in zip(self._normal(keys), self._values, self._seen, strict=True):
            code = _find(column, values)
            found &= code >= 0
            wanted = place * len(values) + code
            place = np.minimum(np.searchsorted(seen, wanted), len(seen) - 1)
            found &= seen[place] == wanted
        return np.where(found, place, -1)

    @staticmethod
    def join(*parts: "KeySet") -> "KeySet":
        """The union of some sets."""
        columns = zip(*(part.keys for part in parts), strict=True)
        return KeySet([pa.concat_arrays(each) for each in columns])

    def encode(self) -> bytes:
        sink = pa.BufferOutputStream()
        batch = pa.record_batch(self.keys, schema=self._kinds)
        with pa.ipc.new_stream(sink, self._kinds) as writer:
            writer.write_batch(batch)
        return bytes(sink.getvalue().to_pybytes())

    @staticmethod
    def decode(data: bytes) -> "KeySet":
        with pa.ipc.open_stream(data) as reader:
            return KeySet(reader.read_next_batch().columns)

    def _normal(self, keys: Sequence[pa.Array]) -> list[pa.Array]:
        """Keys in a normal form, in which equal values are identical."""
        batch = cast_out(_to_spark(keys), self._kinds)
        return [_normalise(column) for column in batch.columns]


def _to_spark(keys: Sequence[pa.Array]) -> pa.RecordBatch:
    batch = cast_in(pa.record_batch(list(keys), [str(number) for number in range(len(keys))]))
    columns = [_widen(column) for column in batch.columns]
    return pa.record_batch(columns, batch.schema.names)


def _widen(column: pa.Array) -> pa.Array:
    return column.cast(pa.int64()) if kinds.is_integer(column.type) else column


def _find(column: pa.Array, values: pa.Array) -> Any:
    """The place of each value among some, or -1; null is a value."""
    if not len(values):
        return np.full(len(column), -1)
    found: Any = pc.index_in(column, value_set=values)
    return np.asarray(found.fill_null(-1)).astype(np.int64)


def _normalise(column: pa.Array) -> pa.Array:
    kind = column.type
    if kinds.is_floating(kind):
        values = np.array(column.fill_null(0.0), copy=True)
        values[values == 0] = 0.0
        values[np.isnan(values)] = np.nan
        whole = np.dtype(f"i{values.dtype.itemsize}")
        return pa.array(values.view(whole), mask=np.asarray(column.is_null()))
    if kinds.is_temporal(kind):
        return column.view(pa.int32() if kind.bit_width == 32 else pa.int64())
    if kinds.is_nested(kind) or kinds.is_null(kind):
        return pa.array([_show(value) for value in column.to_pylist()], pa.string())
    return column


def _show(value: Any) -> str | None:
    """A nested value as text that only equal values share."""
    if value is None:
        return None
    if isinstance(value, float):
        return repr(value + 0.0)
    if isinstance(value, dict):
        return "{" + ",".join(map(str, map(_show, value.values()))) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(str, map(_show, value))) + "]"
    return repr(value)
