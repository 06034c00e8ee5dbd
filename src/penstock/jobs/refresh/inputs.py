"""Find which changed rows of a source differ in the columns that a query reads. It blocks."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from lance import LanceDataset

from penstock.errors import InvalidTableState
from penstock.jobs.refresh.context import SourceVersions
from penstock.lance.diff.compare import step_rows
from penstock.lance.diff.equal import as_ids, combine, rows_equal
from penstock.lance.diff.masks import Mask
from penstock.lance.diff.row_diff import Difference
from penstock.lance.diff.row_sets import Ids
from penstock.lance.errors import translated
from penstock.model.views import Column, Rows


def differs_in(
    query: Rows,
    query_then: Rows,
    names: Sequence[str],
    source: SourceVersions,
    difference: Difference,
) -> Mask:
    """Which of the changed rows have another value in one of these columns of the query.

    Columns that Lance computes are compared by value, those that only Spark computes by their
    inputs.
    """
    known = {column.name: column for column in query.columns}
    columns = [known[name] for name in names]
    if any(each.reads_clock for each in columns):
        return np.ones(len(difference.changed.ids), bool)
    paths = [each.path for each in columns if each.path is not None]
    found = reads_differ(paths, difference)
    computed = [each for each in columns if each.path is None]
    if not computed:
        return found
    if query.engine != "lance":
        return found | _reads_differ_of(computed, source, difference)
    then = source.dataset_then
    assert then is not None
    now, changed, open_ones = source.dataset_now, difference.changed, np.flatnonzero(~found)
    step = step_rows(now, np.unique(changed.fragments[open_ones]).tolist())
    before = {column.name: column.expression for column in query_then.columns}
    expressions = [each.expression for each in computed]
    expressions_then = [before.get(each.name, each.expression) for each in computed]
    for start in range(0, len(open_ones), step):
        rows = open_ones[start : start + step]
        ids = changed.ids[rows]
        sides = take(now, ids, expressions), take(then, ids, expressions_then)
        for left, right in zip(*sides, strict=True):
            found[rows] |= ~rows_equal(left, right)
    return found


def outputs_differ(query: Rows, source: SourceVersions, difference: Difference) -> Mask:
    """Which of the changed rows may have another value in any of the query's columns."""
    if any(each.reads_clock for each in query.columns):
        return np.ones(len(difference.changed.ids), bool)
    plain = [each.path for each in query.columns if each.path is not None]
    computed = [each for each in query.columns if each.path is None]
    found = reads_differ(plain, difference)
    return found | _reads_differ_of(computed, source, difference) if computed else found


def reads_differ(paths: Sequence[str], difference: Difference) -> Mask:
    """Which of the changed rows have another value in one of the paths."""
    # A path inside or around a compared one may differ when that does.
    is_known = set(paths) <= difference.differing.keys()
    return difference.differs(paths if is_known else difference.differing.keys())


def _reads_differ_of(
    computed: Sequence[Column], source: SourceVersions, difference: Difference
) -> Mask:
    everything = source.source.reads
    return reads_differ(
        [path for each in computed for path in (each.reads or everything)], difference
    )


def take(dataset: LanceDataset, ids: Ids, expressions: Sequence[str]) -> list[Any]:
    """Expressions over existing rows, in the order of the ids."""
    columns = {f"c{n}": each for n, each in enumerate(expressions)} | {"_rowid": "_rowid"}
    with translated():
        found = dataset._take_rows(pa.array(ids, pa.uint64()), columns=columns)
    if not np.array_equal(as_ids(found["_rowid"]), ids):
        raise InvalidTableState(f"version {dataset.version} lost some of its rows")
    return [combine(found[f"c{n}"]) for n in range(len(expressions))]
