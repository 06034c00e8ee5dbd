"""Queries over the rows of one source: a view row for each source row that the filter takes.

What changed in the source is computed again and takes the place of what it was; nothing else is
touched.
"""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from penstock.datasets.differences import Difference, Rows, compare, scan_all
from penstock.datasets.rowsets import is_among, split_runs
from penstock.datasets.view_notes import read_failed
from penstock.datasets.view_rows import ViewRows, find_view_rows
from penstock.errors import ColumnNotFound
from penstock.model.functions import Function
from penstock.model.views import Definition
from penstock.pipeline.refreshing.context import Context, Plan, SourceAt

if TYPE_CHECKING:
    from lance import LanceDataset

    from penstock.datasets.rowsets import Ids, RowSet
    from penstock.pipeline.plan.masks import Mask


@dataclass(frozen=True, slots=True, eq=False)
class NeededRows:
    """Rows of one fragment of the source that are computed, by offset; None means all of them."""

    fragment: int
    rows: int
    need: "Mask | None" = None
    # Those that the view has.
    was: "Mask | None" = None
    # By function: those whose value in the view is still right.
    keep: "tuple[Mask | None, ...]" = ()


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class RowsWork:
    """What a refresh computes, and what goes."""

    needed: tuple[NeededRows, ...]
    # The view's rows that come from source rows that changed or went; None: the view is built anew.
    gone: ViewRows | None
    # Source rows that changed, and those that went: what is left of a limit is chosen by them.
    touched: "Ids"
    # Rows that functions failed on before, as far as they are not computed now.
    failed: "RowSet | None" = None


def plan(context: Context) -> Plan:
    """Compare the source's two versions, and find the view's rows that this concerns."""
    (source,) = context.sources.values()
    if context.watermark is None or source.dataset_then is None:
        return plan_all(context, source, context.rebuild)
    try:
        difference = compare(source.dataset_now, source.dataset_then, source.source.reads)
    except ColumnNotFound as error:
        return plan_all(context, source, error.message)
    failed = read_failed(context.place, context.watermark.failed, context.watermark.failed_rows)
    if difference.is_empty and not len(failed):
        return Plan(mode="none", reason="nothing that the view reads has changed")
    return _plan_some(context, source, difference, failed)


def plan_all(context: Context, source: SourceAt, reason: str) -> Plan:
    """Build the view anew."""
    import numpy as np

    rows = context.definition.rows
    is_exact = rows is None or (rows.filter is None and rows.limit is None)
    needed = tuple(
        NeededRows(fragment.fragment_id, fragment.physical_rows - fragment.num_deletions)
        for fragment in source.dataset_now.get_fragments()
    )
    total = sum(each.rows for each in needed)
    return Plan(
        mode="full",
        reason=reason,
        rows_to_insert=total if is_exact else None,
        rows_to_update=0,
        rows_to_delete=context.view.count_rows(),
        function_calls=total * len(context.definition.column_functions) if is_exact else None,
        fragments=len(needed),
        work=RowsWork(needed=needed, gone=None, touched=np.empty(0, np.int64)),
    )


def _plan_some(
    context: Context, source: SourceAt, difference: Difference, failed: "RowSet"
) -> Plan:
    import numpy as np

    definition, changed = context.definition, difference.changed
    again = _find_failed(source.dataset_now, failed, difference)
    touched = np.sort(np.concatenate([changed.ids, difference.deleted.ids, again.ids]))
    gone = find_view_rows(context.view, touched)
    computed = Rows(*map(np.concatenate, zip(difference.inserted, changed, again, strict=True)))
    was = is_among(computed.ids, gone.sources)
    keeps = [_find_kept(definition, function, difference) for function in definition.column_functions]
    kept = [
        was & np.concatenate([np.zeros(len(difference.inserted.ids), bool), each,
                              np.zeros(len(again.ids), bool)])
        for each in keeps
    ]
    needed = _by_fragment(source.dataset_now, computed, was, kept)
    has_filter = definition.rows is not None and definition.rows.filter is not None
    is_limited = definition.rows is not None and definition.rows.limit is not None
    updated = int(was.sum())
    return Plan(
        mode="incremental",
        reason=_why(difference, len(again.ids)),
        rows_to_insert=None if has_filter or is_limited else len(computed.ids) - updated,
        rows_to_update=None if has_filter or is_limited else updated,
        rows_to_delete=None if has_filter or is_limited else len(gone.ids) - updated,
        function_calls=sum(len(computed.ids) - int(each.sum()) for each in kept)
        if not (has_filter or is_limited)
        else None if definition.column_functions else 0,
        fragments=len(needed),
        work=RowsWork(needed=needed, gone=gone, touched=touched),
    )
