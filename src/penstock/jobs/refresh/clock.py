"""Find the rows of a source that a query's clock changes: they enter it, leave it, or change in it.

A view's query means another thing at another moment. What its filter says of a row that did not
change differs only if one of the conditions that read the clock does. It blocks.
"""

import re
from typing import NamedTuple

import numpy as np

from penstock.jobs.refresh.context import Context, SourceVersions
from penstock.lance.diff.row_diff import Difference, join_rows, scan_all
from penstock.lance.diff.row_sets import Ids, RowPlaces, is_among
from penstock.lance.read.row_ids import scan_rows
from penstock.model.moments import MARK, at_moment

# A column that is compared with the clock, as `sql/lance/from_spark.py` writes it.
COMPARED = re.compile(rf"\((`[^()]+`) (<|<=|>|>=) ({MARK.pattern})\)")


class TimedDifference(NamedTuple):
    """What changed in a source, and how many of its changed rows only the clock changes."""

    difference: Difference
    timed: int


def compare_in_time(
    context: Context, source: SourceVersions, paths: list[str] | tuple[str, ...]
) -> TimedDifference:
    """Compare the two versions of a source, and its rows at the two moments.

    Rows that only the clock may change are among the changed ones, and differ in no column. Raises
    ColumnNotFound when a version lacks a field.
    """
    found = source.compare(paths)
    timed = find_timed(context, source)
    timed = timed.take(
        ~is_among(timed.ids, found.inserted.ids) & ~is_among(timed.ids, found.changed.ids)
    )
    if not len(timed.ids):
        return TimedDifference(found, 0)
    changed = join_rows(found.changed, timed)
    places = np.searchsorted(changed.ids, found.changed.ids)
    differing = {path: np.zeros(len(changed.ids), bool) for path in found.differing}
    for path, mask in found.differing.items():
        differing[path][places] = mask
    fragments = len(source.dataset_now.get_fragments())
    both = Difference(found.inserted, found.deleted, changed, differing, fragments)
    return TimedDifference(both, len(timed.ids))


def find_timed(context: Context, source: SourceVersions) -> RowPlaces:
    """The source's rows that the clock may change since the last refresh."""
    clock, mark, rows = context.definition.clock, context.watermark, context.definition.rows
    if clock is None or mark is None or mark.moment == context.moment:
        return RowPlaces(*[_no_ids()] * 3)
    assert mark.moment is not None
    assert context.moment is not None
    reads_it = rows is not None and any(column.reads_clock for column in rows.columns)
    if reads_it or clock.conditions is None:
        return scan_all(source.dataset_now)
    moments = mark.moment, context.moment
    where = " OR ".join(_write_change(each, *moments) for each in clock.conditions)
    parts = [(_no_ids(),) * 3] if where else []
    if where:
        holding = [each.fragment_id for each in source.dataset_now.get_fragments()]
        parts += scan_rows(source.dataset_now, holding, where)
    return join_rows(*(RowPlaces(*each) for each in parts))


def _write_change(condition: str, then: int, now: int) -> str:
    """Whether a condition is another at another moment, in Lance's SQL."""
    found = COMPARED.fullmatch(condition)
    if found is None:
        return f"({at_moment(condition, now)}) IS DISTINCT FROM ({at_moment(condition, then)})"
    # Only rows between the two bounds; an index can find them.
    column, sign, mark = found[1], found[2], found[3]
    low, high = (at_moment(mark, moment) for moment in sorted((then, now)))
    if sign in (">", "<="):
        return f"({column} > {low} AND {column} <= {high})"
    return f"({column} >= {low} AND {column} < {high})"


def _no_ids() -> Ids:
    return np.empty(0, np.int64)
