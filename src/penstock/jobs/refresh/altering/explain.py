"""Tell what an alteration would do beyond its refresh: rows and columns that stay, come and go."""

from dataclasses import replace
from typing import Any

import numpy as np

from penstock.jobs.refresh.altering.changes import find_changes
from penstock.jobs.refresh.chunks.plan import DIFFERING, ChunkWork, UnsettledRows
from penstock.jobs.refresh.context import Context, Count, Plan, Unknown
from penstock.jobs.refresh.rows.plan import SomeRows, why_unknown
from penstock.jobs.refresh.udtf.plan import SparkPartitions, UdtfWork
from penstock.lance.diff.row_sets import is_among
from penstock.model.views import SYSTEM_COLUMNS


def explain_alteration(context: Context, plan: Plan) -> tuple[Plan, dict[str, Any]]:
    """The plan with all of its calls, and what else is told of it."""
    changes = find_changes(context.spec)
    staying = _count_staying(context, plan)
    filled = [
        each
        for each in context.definition.column_functions
        if any(out.column in changes.computed for out in each.outputs)
    ]
    if filled and staying != 0:
        plan = replace(plan, function_calls=_add(plan.function_calls, staying, len(filled)))
    told: dict[str, Any] = {
        "columns_kept": [name for name in changes.kept if name not in SYSTEM_COLUMNS],
        "columns_computed": [name for name in changes.computed if name not in SYSTEM_COLUMNS],
        "columns_dropped": [name for name in changes.dropped if name not in SYSTEM_COLUMNS],
        "rows_staying": staying if isinstance(staying, int) else None,
    }
    if isinstance(staying, Unknown):
        told["unknown"] = {**plan.to_json()["unknown"], "rows_staying": staying.because}
    return plan, told


def _count_staying(context: Context, plan: Plan) -> Count:
    """How many rows of the view stay where they are."""
    if plan.mode == "full":
        return 0
    total, work = context.view.count_rows(), plan.work
    match work:
        case UnsettledRows():
            return Unknown("only Spark evaluates the query's filter")
        case SparkPartitions():
            return Unknown("only Spark computes the rows of the partitions")
        case SomeRows():
            # Rows that only Spark can match with the filter are among those that may go.
            unknown = why_unknown(context.definition) if work.same.any() else None
            return unknown or total - len(work.gone.ids)
        case ChunkWork(removed=removed, call=call) if removed is not None and call is not None:
            if is_among(removed.sources, np.sort(call.ids)).any():
                return DIFFERING
            return total - len(removed.row_ids)
        case UdtfWork(removed=gone) if gone is not None:
            return total - len(gone)
        case None:
            return total
        case _:
            return 0


def _add(calls: Count, staying: Count, functions: int) -> Count:
    for each in (calls, staying):
        if isinstance(each, Unknown):
            return each
    assert isinstance(calls, int)
    assert isinstance(staying, int)
    return calls + staying * functions
