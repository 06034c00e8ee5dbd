"""Plan the alteration of a query over the rows of one source.

Rows that the new query still takes stay where they are, with their ids, if the columns that they
keep are still right. Others are computed; what the rows that stay lack is filled in afterwards.
"""

import numpy as np

from penstock.errors import ColumnNotFound
from penstock.jobs.refresh.altering.changes import (
    compare_definitions,
    has_same_filter,
    is_same_function,
    list_reads,
)
from penstock.jobs.refresh.context import Context, Plan, SourceVersions
from penstock.jobs.refresh.inputs import reads_differ
from penstock.jobs.refresh.rows.plan import (
    SomeRows,
    find_again,
    find_differing,
    leave_same,
    plan_all,
    why_unknown,
)
from penstock.jobs.refresh.rows.view_rows import find_view_rows
from penstock.jobs.refresh.view_notes import read_failed
from penstock.lance.diff.row_diff import join_rows, scan_all
from penstock.lance.diff.row_sets import is_among


def plan(context: Context) -> Plan:
    """Keep the rows that the new query still takes, and whose kept columns are still right."""
    (source,) = context.sources.values()
    try:
        return _plan(context, source)
    except ColumnNotFound as error:
        return plan_all(context, source, error.message)


def _plan(context: Context, source: SourceVersions) -> Plan:
    before, after, mark = context.definition_before, context.definition, context.watermark
    assert mark is not None
    changes = compare_definitions(before, after)
    is_same_filter = has_same_filter(before, after)
    reads = before.sources[0].reads if is_same_filter else list_reads(before, changes.kept)
    difference = source.compare(reads)
    failed = read_failed(context.place, mark.failed, mark.failed_rows)
    changed = difference.changed
    if is_same_filter:
        again = find_again(source.dataset_now, failed, difference)
        rows = join_rows(difference.inserted, changed, again)
        touched = np.sort(np.concatenate([changed.ids, difference.deleted.ids, again.ids]))
        gone = find_view_rows(context.view, touched)
    else:
        # Any row may come into the query now, or leave it.
        rows, gone = scan_all(source.dataset_now), find_view_rows(context.view, None)
        touched = gone.sources
    was = is_among(rows.ids, gone.sources)
    is_right = was & ~failed.contains(rows.ids)
    is_other = reads_differ(list_reads(before, changes.kept), difference)
    differs = is_among(rows.ids, changed.ids[is_other])
    kept = tuple(
        is_right & ~is_among(rows.ids, find_differing(after, function, difference))
        if is_same_function(before, after, function)
        else was & False
        for function in after.column_functions
    )
    what = SomeRows(
        rows=rows, touched=touched, gone=gone, was=was, same=is_right & ~differs, kept=kept
    )
    what = leave_same(after, source.dataset_now, what)
    unknown, updated = why_unknown(after), int(what.was.sum())
    calls = sum(len(what.rows.ids) - int(each.sum()) for each in what.kept)
    return Plan(
        mode="incremental",
        reason="the view is altered",
        rows_to_insert=unknown or len(what.rows.ids) - updated,
        rows_to_update=unknown or updated,
        rows_to_delete=unknown or len(what.gone.ids) - updated,
        function_calls=(unknown or calls) if calls else 0,
        fragments=len(np.unique(what.rows.fragments)),
        work=what,
    )
