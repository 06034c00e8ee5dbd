"""Match children that a function made with those that a view has of the same source rows. Pure.

First by their number, then by what the function made, and at last by the part of it that computed
columns of the view read: an offset in a text is another one when a paragraph is inserted above, and
its embedding is not. Children that are equal are matched in their order.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from msgspec import Struct

from penstock.lance.diff.digests import digest_rows
from penstock.lance.diff.equal import as_ids, rows_equal
from penstock.lance.diff.masks import Mask
from penstock.lance.diff.row_sets import Ids
from penstock.model.views import CHILD_INDEX, SOURCE_ROW_ID


class ComparedColumns(Struct, frozen=True):
    """The columns by which children are compared."""

    # What the function makes, and the part of that by which a child is known if the rest differs.
    outputs: tuple[str, ...]
    content: tuple[str, ...]
    # What a row that stays must have; others are filled in afterwards.
    inherited: tuple[str, ...]

    @property
    def names(self) -> tuple[str, ...]:
        return (*self.outputs, *self.inherited)


class Matched(NamedTuple):
    """What each child that was made is of those that the view has."""

    # The place of the view's row; -1 for a new child.
    partners: Ids
    # Whether that row has all of its values, and whether it differs in what the function made.
    same: Mask
    alike: Mask


def match_children(
    made: pa.RecordBatch, held: pa.RecordBatch, compared: ComparedColumns
) -> Matched:
    """Match children, which come with their source row and number, those of a row in order."""
    partners = np.full(made.num_rows, -1)
    numbers = [as_ids(each.column(CHILD_INDEX)) for each in (made, held)]
    _match(partners, made, held, numbers, compared.outputs)
    _match(partners, made, held, None, compared.outputs)
    alike = partners < 0
    if compared.content:
        _match(partners, made, held, None, compared.content)
    alike &= partners >= 0
    rows = np.flatnonzero((partners >= 0) & ~alike)
    same = np.zeros(made.num_rows, bool)
    same[rows] = numbers[0][rows] == numbers[1][partners[rows]]
    same[rows] &= _are_equal(made, rows, held, partners[rows], compared.inherited)
    return Matched(partners, same, alike)


def _match(
    partners: Ids,
    made: pa.RecordBatch,
    held: pa.RecordBatch,
    keys: Sequence[Ids] | None,
    names: Sequence[str],
) -> None:
    """Match children without a partner that have the same values, by keys, or by these values."""
    is_left = np.ones(held.num_rows, bool)
    is_left[partners[partners >= 0]] = False
    sides = (made, np.flatnonzero(partners < 0)), (held, np.flatnonzero(is_left))
    (_, new), (_, old) = sides
    if not len(new) or not len(old):
        return
    sources = [as_ids(batch.column(SOURCE_ROW_ID))[rows] for batch, rows in sides]
    if keys is None:
        found = [digest_rows(_take(batch, rows, names), len(rows)) for batch, rows in sides]
    else:
        found = [each[rows] for each, (_, rows) in zip(keys, sides, strict=True)]
    at = _pair(sources, found)
    new, old = new[at >= 0], old[at[at >= 0]]
    # Digests of different values may be equal.
    is_right = _are_equal(made, new, held, old, names)
    partners[new[is_right]] = old[is_right]


def _pair(sources: Sequence[Ids], keys: Sequence[Any]) -> Ids:
    """For each row on the left the one on the right of the same source and key: the first with the
    first, the second with the second; -1 where there is none."""
    both, of = np.concatenate(keys), np.concatenate(sources)
    order = np.lexsort((both, of))
    is_first = np.ones(len(order), bool)
    is_first[1:] = (np.diff(of[order]) != 0) | (both[order][1:] != both[order][:-1])
    groups = np.empty(len(order), np.int64)
    groups[order] = np.cumsum(is_first)
    count = len(sources[0])
    left, right = _number(groups[:count], len(order)), _number(groups[count:], len(order))
    back = np.argsort(right)
    at = np.minimum(np.searchsorted(right[back], left), len(right) - 1)
    return np.where(right[back[at]] == left, back[at], -1)


def _number(groups: Ids, most: int) -> Ids:
    """A number for each row that tells its group and its place there."""
    order = np.argsort(groups, kind="stable")
    ordered = groups[order]
    places = np.empty(len(groups), np.int64)
    places[order] = np.arange(len(groups)) - np.searchsorted(ordered, ordered)
    return groups * most + places


def _are_equal(
    made: pa.RecordBatch, new: Ids, held: pa.RecordBatch, old: Ids, names: Sequence[str]
) -> Mask:
    found = np.ones(len(new), bool)
    for left, right in zip(_take(made, new, names), _take(held, old, names), strict=True):
        found &= rows_equal(left, right)
    return found


def _take(batch: pa.RecordBatch, rows: Ids, names: Sequence[str]) -> list[pa.Array]:
    if len(rows) == batch.num_rows and (np.diff(rows) == 1).all():
        return [batch.column(name) for name in names]
    return [batch.column(name).take(pa.array(rows)) for name in names]
