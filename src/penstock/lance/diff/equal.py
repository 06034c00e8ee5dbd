"""Row-wise equality of Arrow arrays of any type: NaN equals NaN, and null equals null.

Otherwise floats are compared bit by bit: 0.0 and -0.0 differ, as they may for a function.
"""

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as t

from penstock.lance.diff.masks import Mask


def rows_equal(left: pa.Array, right: pa.Array) -> Mask:
    """Whether each row of one array has the value of the same row of the other."""
    if len(left) != len(right):
        raise ValueError(f"{len(left)} rows cannot be compared with {len(right)}")
    if left.type != right.type:
        return np.zeros(len(left), bool)
    valid, other_valid = _valid(left), _valid(right)
    same: Mask = valid == other_valid
    both = valid & other_valid
    if both.any():
        same[both] = _values_equal(_filter(left, both), _filter(right, both))
    return same


def _values_equal(left: pa.Array, right: pa.Array) -> Mask:
    """Equality of arrays without nulls at the top level."""
    kind = left.type
    if isinstance(left, pa.ExtensionArray) and isinstance(right, pa.ExtensionArray):
        return rows_equal(left.storage, right.storage)
    if t.is_dictionary(kind):
        return rows_equal(_decode(left), _decode(right))
    if t.is_floating(kind):
        return _floats_equal(left, right)
    if t.is_struct(kind):
        same = np.ones(len(left), bool)
        for a, b in zip(_flatten(left), _flatten(right), strict=True):
            same &= rows_equal(a, b)
        return same
    if t.is_fixed_size_list(kind):
        size = kind.list_size
        if not size:
            return np.ones(len(left), bool)
        items = rows_equal(_flatten(left), _flatten(right))
        return np.asarray(items.reshape(-1, size).all(axis=1))
    if t.is_map(kind):
        plain = pa.list_(pa.struct([("key", kind.key_type), ("value", kind.item_type)]))
        return _lists_equal(_to_list(left, plain), _to_list(right, plain))
    if t.is_list(kind) or t.is_large_list(kind):
        return _lists_equal(left, right)
    found: Any = pc.equal(left, right)
    return np.asarray(found)


def _floats_equal(left: pa.Array, right: pa.Array) -> Mask:
    a: Any = left.to_numpy(zero_copy_only=False)
    b: Any = right.to_numpy(zero_copy_only=False)
    whole = np.dtype(f"u{a.dtype.itemsize}")
    same: Mask = (a.view(whole) == b.view(whole)) | (np.isnan(a) & np.isnan(b))
    return same


def _lists_equal(left: pa.Array, right: pa.Array) -> Mask:
    lengths = np.asarray(pc.list_value_length(left)).astype(np.int64)
    same: Mask = lengths == np.asarray(pc.list_value_length(right))
    # Items are aligned only where the lists have the same length; empty ones have none.
    rows = same & (lengths > 0)
    if rows.any():
        items = rows_equal(_flatten(_filter(left, rows)), _flatten(_filter(right, rows)))
        starts = np.concatenate([[0], np.cumsum(lengths[rows])[:-1]])
        same[rows] = np.logical_and.reduceat(items, starts)
    return same


def _to_list(array: pa.Array, plain: pa.DataType) -> pa.Array:
    """A map without nulls as a list of structs."""
    given: Any = array
    offsets = given.offsets
    start, end = offsets[0].as_py(), offsets[-1].as_py()
    items = pa.StructArray.from_arrays(
        [given.keys[start:end], given.items[start:end]], names=["key", "value"]
    )
    found: pa.Array = pa.ListArray.from_arrays(pc.subtract(offsets, start), items)
    return found.cast(plain)


def _valid(array: pa.Array) -> Mask:
    if array.null_count == 0:
        return np.ones(len(array), bool)
    return np.asarray(array.is_valid())


def _filter(array: pa.Array, mask: Mask) -> pa.Array:
    # Not `filter`, which some nested types lack.
    found: pa.Array = array if mask.all() else array.take(pa.array(np.flatnonzero(mask)))
    return found


def _flatten(array: Any) -> Any:
    return array.flatten()


def _decode(array: Any) -> pa.Array:
    found: pa.Array = array.dictionary_decode()
    return found


def combine(column: pa.ChunkedArray) -> pa.Array:
    """A column as one array."""
    found: Any = column.combine_chunks()
    return found


def as_ids(column: pa.ChunkedArray | pa.Array) -> np.ndarray[Any, Any]:
    """Row ids as numbers."""
    return np.asarray(column).astype(np.int64)
