"""Compare blob fields of two versions in bounded memory. Everything here blocks.

Reading a blob column gives only place and size, so the bytes have to be read and compared. Blobs
outside the table are compared by address alone.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.lance.columns.fields import show_path
from penstock.lance.diff.equal import rows_equal
from penstock.lance.diff.fragments import has_blobs, is_blob
from penstock.lance.diff.masks import Mask
from penstock.lance.diff.row_sets import Ids
from penstock.lance.read.by_id import RowReader

# How many bytes of blobs are in memory at once, for each of the two versions.
STEP_BYTES = 32_000_000
EXTERNAL_KIND = 3


class Side(NamedTuple):
    """A field of some rows in one version; for blobs, the values are only their places."""

    reader: RowReader
    path: str
    values: pa.Array


def fields_equal(
    left: Side, right: Side, field: Any, ids: Ids, step_bytes: int = STEP_BYTES
) -> Mask:
    """Whether each of the rows, which both versions have, is equal in both."""
    if not has_blobs(field) or left.values.type != right.values.type:
        return rows_equal(left.values, right.values)
    nulls = np.asarray(left.values.is_null())
    same: Mask = nulls == np.asarray(right.values.is_null())
    if is_blob(field):
        same &= nulls | _places_equal(left.values, right.values)
        wanted = ~nulls & ~_is_external(left.values)
        return _bytes_equal(left, right, field, ids, same, wanted, step_bytes)
    if pa.types.is_struct(left.values.type):
        for child in field.children():
            sides = _inside(left, child.name()), _inside(right, child.name())
            same &= fields_equal(*sides, child, ids, step_bytes)
        return same
    return _bytes_equal(left, right, field, ids, same, ~nulls, step_bytes)


def _inside(side: Side, name: str) -> Side:
    values: Any = pc.struct_field(side.values, name)
    return Side(side.reader, f"{side.path}.{show_path((name,))}", values)


def _places_equal(left: pa.Array, right: pa.Array) -> Mask:
    """Whether blobs may be equal: same size, and same file if it is not the table's."""
    same: Mask = _sizes(left) == _sizes(right)
    outside = _is_external(left)
    same &= outside == _is_external(right)
    if outside.any():
        same &= ~outside | rows_equal(left, right)
    return np.asarray(same)


def _bytes_equal(
    left: Side,
    right: Side,
    field: Any,
    ids: Ids,
    same: Mask,
    wanted: Mask,
    step_bytes: int,
) -> Mask:
    """The rows of `same` whose bytes are equal as well; reads only wanted rows."""
    found = same.copy()
    rows = np.flatnonzero(same & wanted)
    sizes = np.maximum(_total(left.values, field), _total(right.values, field))[rows]
    for step in _steps(rows, sizes, step_bytes):
        pair = [side.reader.read_bytes(ids[step], side.path) for side in (left, right)]
        found[step] = rows_equal(*pair)
    return found


def _steps(rows: Any, sizes: Any, step_bytes: int) -> Iterator[Any]:
    """The rows in parts that are small enough, or of one row."""
    start, held = 0, 0
    for at, size in enumerate(sizes.tolist()):
        if at > start and held + size > step_bytes:
            yield rows[start:at]
            start, held = at, 0
        held += size
    if len(rows):
        yield rows[start:]


def _total(values: pa.Array, field: Any) -> Any:
    """The blob bytes of each row; blobs outside the table may have any size."""
    if is_blob(field):
        return np.where(_is_external(values), STEP_BYTES, _sizes(values))
    (item,) = field.children()
    rows: Any = pc.list_parent_indices(values)
    items: Any = pc.list_flatten(values)
    return np.bincount(np.asarray(rows), _item_total(items, item), len(values)).astype(np.int64)


def _item_total(items: Any, field: Any) -> Any:
    if is_blob(field) or not pa.types.is_struct(items.type):
        return _total(items, field) if has_blobs(field) else np.zeros(len(items), np.int64)
    return sum(
        (_item_total(pc.struct_field(items, child.name()), child) for child in field.children()),
        np.zeros(len(items), np.int64),
    )


def _sizes(places: pa.Array) -> Ids:
    found: Any = pc.fill_null(pc.struct_field(places, "size"), 0)
    return np.asarray(found).astype(np.int64)


def _is_external(places: pa.Array) -> Mask:
    kind: Any = places.type
    if kind.get_field_index("kind") < 0:
        return np.zeros(len(places), bool)
    found: Any = pc.fill_null(pc.equal(pc.struct_field(places, "kind"), EXTERNAL_KIND), False)
    return np.asarray(found)
