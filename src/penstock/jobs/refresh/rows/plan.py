"""Plan queries over the rows of one source: one view row per source row that matches.

Changed source rows are computed again and replace their view rows; nothing else is touched.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from lance import LanceDataset

from penstock.errors import ColumnNotFound
from penstock.jobs.refresh.clock import compare_in_time
from penstock.jobs.refresh.context import (
    Context,
    Plan,
    SourceVersions,
    Unknown,
    Work,
    plan_nothing,
)
from penstock.jobs.refresh.inputs import outputs_differ, reads_differ
from penstock.jobs.refresh.rows.view_rows import ViewRows, find_view_rows
from penstock.jobs.refresh.view_notes import read_failed
from penstock.lance.diff.masks import Mask
from penstock.lance.diff.row_diff import Difference, find_taken, join_rows, scan_all
from penstock.lance.diff.row_sets import Ids, RowPlaces, RowSet, is_among
from penstock.lance.errors import translated
from penstock.model.functions import Function
from penstock.model.views import Definition

# Selects those of some rows that match the filter.
Match = Callable[[RowPlaces], RowPlaces]


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class SomeRows:
    """Source rows to compute, and the view rows that they replace."""

    rows: RowPlaces
    # Source rows that changed, were deleted or are tried again; sorted.
    touched: Ids
    # The view rows that come from them.
    gone: ViewRows
    # Which of `rows` the view has.
    was: Mask
    # Which of `rows` only the filter can affect, because no column of the query changed. Those that
    # the view has and that still match are not touched.
    same: Mask
    # By function: which of them have a value in the view that is still right.
    kept: tuple[Mask, ...] = ()

    def without(self, staying: Ids) -> "SomeRows":
        """The same, without source rows that are in the view unchanged; these are sorted."""
        out = ~is_among(self.gone.sources, staying)
        return replace(
            self.only(~is_among(self.rows.ids, staying)),
            touched=self.touched[~is_among(self.touched, staying)],
            gone=ViewRows(self.gone.sources[out], self.gone.ids[out]),
        )

    def only(self, which: Mask) -> "SomeRows":
        """The same, with some of the source rows to compute."""
        return replace(
            self,
            rows=self.rows.take(which),
            was=self.was[which],
            same=self.same[which],
            kept=tuple(each[which] for each in self.kept),
        )


@dataclass(frozen=True, slots=True, eq=False)
class AllRows:
    """Rebuild the view, from all rows of the source or from those within a limit."""

    rows: RowPlaces | None = None


def plan(context: Context) -> Plan:
    """Compare the source's two versions, and find the view rows that are affected."""
    (source,) = context.sources.values()
    if context.watermark is None or source.dataset_then is None:
        return plan_all(context, source, context.rebuild)
    try:
        difference, timed = compare_in_time(context, source, source.source.reads)
    except ColumnNotFound as error:
        return plan_all(context, source, error.message)
    failed = read_failed(context.place, context.watermark.failed, context.watermark.failed_rows)
    if difference.is_empty and not len(failed):
        return plan_nothing("nothing that the view reads has changed")
    return _plan_some(context, source, difference, failed, timed)


def plan_all(context: Context, source: SourceVersions, reason: str) -> Plan:
    """Rebuild the view."""
    total = source.dataset_now.count_rows()
    functions = len(context.definition.column_functions)
    unknown = why_unknown(context.definition)
    return Plan(
        mode="full",
        reason=reason,
        rows_to_insert=unknown or total,
        rows_to_update=0,
        rows_to_delete=context.view.count_rows(),
        function_calls=(unknown or total * functions) if functions else 0,
        fragments=len(source.dataset_now.get_fragments()),
        work=AllRows(),
    )


def count(context: Context, plan: Plan) -> Plan:
    """The plan with the numbers that depend on a filter, if Lance can tell them."""
    rows = context.definition.rows
    assert rows is not None
    if not isinstance(plan.rows_to_insert, Unknown):
        return plan
    where = rows.filter_for_lance
    if where is None or rows.limit is not None:
        return plan
    (source,) = context.sources.values()
    what = plan.work
    assert isinstance(what, AllRows | SomeRows)
    if isinstance(what, AllRows):
        with translated():
            total = source.dataset_now.count_rows(where)
        calls = total * len(context.definition.column_functions)
        return replace(plan, rows_to_insert=total, function_calls=calls)
    taken = find_taken(source.dataset_now, what.rows, where)
    updated = int((taken & what.was).sum())
    return replace(
        plan,
        rows_to_insert=int(taken.sum()) - updated,
        rows_to_update=updated,
        rows_to_delete=len(what.gone.ids) - updated,
        function_calls=sum(int((taken & ~each).sum()) for each in what.kept),
    )


def _plan_some(
    context: Context, source: SourceVersions, difference: Difference, failed: RowSet, timed: int
) -> Plan:
    definition = context.definition
    again = find_again(source.dataset_now, failed, difference)
    touched = [difference.changed.ids, difference.deleted.ids, again.ids]
    gone = find_view_rows(context.view, np.sort(np.concatenate(touched)))
    rows = join_rows(difference.inserted, difference.changed, again)
    was = is_among(rows.ids, gone.sources)
    # The view has no value for a failed row.
    is_right = was & ~failed.contains(rows.ids)
    kept = tuple(
        is_right & ~is_among(rows.ids, find_differing(definition, function, difference))
        for function in definition.column_functions
    )
    same = is_right & is_among(rows.ids, _same_outputs(definition, source, difference))
    what = SomeRows(
        rows=rows,
        touched=np.sort(np.concatenate(touched)),
        gone=gone,
        was=was,
        same=same,
        kept=kept,
    )
    what = leave_same(definition, source.dataset_now, what)
    if not (len(what.rows.ids) or len(what.gone.ids) or len(failed)):
        return plan_nothing("no row that the view has, or is to have, has changed")
    updated = int(what.was.sum())
    calls = sum(len(what.rows.ids) - int(each.sum()) for each in what.kept)
    unknown = why_unknown(definition)
    return Plan(
        mode="incremental",
        reason=_why(difference, len(again.ids), _why_timed(definition, timed)),
        rows_to_insert=unknown or len(what.rows.ids) - updated,
        rows_to_update=unknown or updated,
        rows_to_delete=unknown or len(what.gone.ids) - updated,
        function_calls=(unknown or calls) if calls else 0,
        fragments=len(np.unique(what.rows.fragments)),
        work=what,
    )


def _same_outputs(definition: Definition, source: SourceVersions, difference: Difference) -> Ids:
    """The changed rows that are the same in every column of the query."""
    assert definition.rows is not None
    return difference.changed.ids[~outputs_differ(definition.rows, source, difference)]


def leave_same(definition: Definition, now: LanceDataset, what: SomeRows) -> SomeRows:
    """What is left without rows that stay as they are, as far as Lance can tell."""
    query = definition.rows
    assert query is not None
    staying = what.rows.take(what.same)
    where = query.filter_for_lance
    if query.has_sparks_filter and len(staying.ids):
        return what
    if where is not None and len(staying.ids):
        staying = staying.take(find_taken(now, staying, where))
    left = what.without(staying.ids)
    if definition.clock is not None and where is not None:
        # Rows that neither were in the view nor are to be.
        left = left.only(left.was | find_taken(now, left.rows, where))
    return replace(left, same=left.same & False)


def why_unknown(definition: Definition) -> Unknown | None:
    """Why it is unknown which rows of the source are rows of the view; None when all are."""
    rows = definition.rows
    assert rows is not None
    if rows.limit is not None:
        return Unknown("which rows are within the LIMIT is found when it runs")
    if rows.filter is None:
        return None
    return Unknown(
        "only Spark evaluates the query's filter"
        if rows.has_sparks_filter
        else "the filter is evaluated when it runs"
    )


def find_again(dataset: LanceDataset, failed: RowSet, difference: Difference) -> RowPlaces:
    """Rows that a function failed on, that still exist and did not change."""
    rows = scan_all(dataset, None if len(failed) else ())
    return rows.take(failed.contains(rows.ids) & ~is_among(rows.ids, difference.changed.ids))


def find_differing(definition: Definition, function: Function, difference: Difference) -> Ids:
    """The changed rows that are others to a function."""
    columns = {column.name: column for column in definition.rows.columns} if definition.rows else {}
    inputs = [columns[name] for name in function.inputs]
    if any(column.reads_clock for column in inputs):
        return difference.changed.ids[:0]
    everything = definition.sources[0].reads
    reads = {
        path
        for column in inputs
        for path in ((column.path,) if column.path is not None else column.reads or everything)
    }
    return difference.changed.ids[reads_differ([*reads], difference)]


def _why_timed(definition: Definition, timed: int) -> tuple[int, str]:
    """How many rows changed only because time has passed, and what became of them."""
    assert definition.rows is not None
    if any(column.reads_clock for column in definition.rows.columns):
        return timed, "are computed anew because an output reads the clock"
    clock = definition.clock
    if clock is not None and clock.conditions is None:
        return timed, "are looked at because the filter reads the clock"
    return timed, "came into the filter's time or left it"


def _why(difference: Difference, again: int, timed: tuple[int, str]) -> str:
    parts = [
        f"1 row of the source {one}" if count == 1 else f"{count} rows of the source {many}"
        for one, many, count in (
            ("is new", "are new", len(difference.inserted.ids)),
            ("changed", "changed", len(difference.changed.ids) - timed[0]),
            ("is gone", "are gone", len(difference.deleted.ids)),
            (timed[1].replace("are ", "is ", 1), timed[1], timed[0]),
        )
        if count
    ]
    if again:
        parts.append(f"{again} {'row' if again == 1 else 'rows'} failed before")
    return ", ".join(parts)


def limit_rows(
    work: Work, source: SourceVersions, what: AllRows | SomeRows, limit: int, match: Match
) -> AllRows | SomeRows:
    """What to compute and what to remove, with a limit; reads only ids."""
    if isinstance(what, AllRows):
        return AllRows(_first(match(scan_all(source.dataset_now)), limit))
    old = find_view_rows(work.view, None)
    stays = ~is_among(old.sources, what.touched)
    news = match(what.rows)
    pool = np.concatenate([old.sources[stays], news.ids])
    if limit and len(old.sources) >= limit:
        # Rows after the last admitted one were never checked, so it is unknown which match.
        last = old.sources[-1]
        if int((pool <= last).sum()) < limit:
            there = scan_all(source.dataset_now)
            unknown = (there.ids > last) & ~is_among(there.ids, what.rows.ids)
            more = match(there.take(unknown))
            news = join_rows(news, more)
            pool = np.concatenate([pool, more.ids])
        else:
            pool = pool[pool <= last]
    chosen = np.sort(pool)[:limit]
    stays &= is_among(old.sources, chosen)
    rows = news.take(is_among(news.ids, chosen))
    at = np.minimum(np.searchsorted(what.rows.ids, rows.ids), max(0, len(what.rows.ids) - 1))
    known = is_among(rows.ids, what.rows.ids)
    return SomeRows(
        rows=rows,
        touched=what.touched,
        gone=ViewRows(old.sources[~stays], old.ids[~stays]),
        was=is_among(rows.ids, old.sources),
        same=np.zeros(len(rows.ids), bool),
        kept=tuple(known & each[at] if len(each) else known for each in what.kept),
    )


def _first(rows: RowPlaces, count: int) -> RowPlaces:
    return rows.take(np.arange(min(count, len(rows.ids))))
