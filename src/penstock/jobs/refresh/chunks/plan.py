"""Plan chunker views: which source rows to call the function for, and which view rows to remove.

A row's children stay while its inputs do. When only inherited columns changed, they get the new
values without a call. Under a limit, rows beyond the last admitted one are unknown.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np
from lance import LanceDataset

from penstock.errors import ColumnNotFound
from penstock.jobs.refresh.chunks.children import ChildRows, find_children
from penstock.jobs.refresh.clock import compare_in_time
from penstock.jobs.refresh.context import (
    Context,
    Count,
    Plan,
    SourceVersions,
    Unknown,
    plan_nothing,
)
from penstock.jobs.refresh.inputs import differs_in, take
from penstock.jobs.refresh.view_notes import read_failed
from penstock.lance.columns.fields import get_field
from penstock.lance.diff.fragments import has_blobs
from penstock.lance.diff.masks import Mask
from penstock.lance.diff.row_diff import find_taken, join_rows, scan_all
from penstock.lance.diff.row_sets import Ids, RowPlaces, is_among, sort_distinct
from penstock.lance.errors import translated
from penstock.lance.read.row_ids import scan_rows
from penstock.model.views import CHILD_INDEX, SOURCE_ROW_ID, Rows

# Up to so many rows are taken one by one, then a filter selects them all.
MAX_TAKEN = 10_000

MADE = Unknown("the function decides how many rows it makes")
LIMITED = Unknown("output_limit ends the calls, and the function decides how many rows it makes")
DIFFERING = Unknown("the function decides which rows are others than before")
FILTERED = Unknown("only Spark evaluates the query's filter")

# Selects those of some rows of a version that match a query.
Match = Callable[["LanceDataset", RowPlaces, Rows], RowPlaces]


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class ChunkWork:
    """What to do, by ids of source rows."""

    # Rows to make again; None is all of the query's.
    call: RowPlaces | None
    # Rows whose children get new inherited values.
    follow: Ids
    # Rows that are gone from the query.
    gone: Ids
    # Rows of the view to remove in any case; None is all.
    removed: ChildRows | None
    # Under a limit: the rows that stay. The source row that an earlier limit cut may have to be
    # made again.
    kept: ChildRows | None = None
    cut: int | None = None
    # Whether there are rows beyond the limit, which nobody looks at.
    is_cut: bool = False
    # Rows to call whose children the view has as the function made them: only inherited values
    # changed, so the function is not called. Sorted.
    known: Ids = field(default_factory=lambda: _no_ids())


class Planner(Protocol):
    """Finds the work, once rows can be matched with the query."""

    def settle(self, match: Match) -> ChunkWork: ...


class UnsettledRows:
    """Work over changed rows for which only Spark can tell whether they match the query."""

    def __init__(self, planner: Planner) -> None:
        self._planner = planner

    def settle(self, match: Match) -> ChunkWork:
        """The work, given a function that tells which rows of a version match the query."""
        return self._planner.settle(match)


def plan(context: Context) -> Plan:
    """Plan a refresh of a chunker's view."""
    (source,) = context.sources.values()
    then = source.dataset_then
    if context.watermark is None or then is None:
        return plan_all(context, source, context.rebuild)
    try:
        return _Planner(context, source, then).plan()
    except ColumnNotFound as error:
        return plan_all(context, source, error.message)


def plan_all(context: Context, source: SourceVersions, reason: str) -> Plan:
    """Rebuild the view."""
    rows = context.definition.rows
    assert rows is not None
    calls: Count
    if context.spec.output_limit is not None:
        calls = LIMITED
    elif rows.has_sparks_filter:
        calls = FILTERED
    else:
        with translated():
            calls = source.dataset_now.count_rows(rows.filter_for_lance)
    nothing = _no_ids()
    return Plan(
        mode="full",
        reason=reason,
        rows_to_insert=MADE,
        rows_to_update=0,
        rows_to_delete=context.view.count_rows(),
        function_calls=calls,
        fragments=len(source.dataset_now.get_fragments()),
        work=ChunkWork(
            call=None, follow=nothing, gone=nothing, removed=None, kept=ChildRows(*[nothing] * 5)
        ),
    )


def count_updates(work: ChunkWork, sources: Ids) -> Count:
    """How many of these source rows, which have children, get others."""
    assert work.call is not None
    is_made_again = is_among(sources, np.sort(work.call.ids)).any()
    return DIFFERING if is_made_again else len(sources)


class _Planner:
    """Compares what the view follows with what it is to follow."""

    def __init__(self, context: Context, source: SourceVersions, then: LanceDataset) -> None:
        definition, mark = context.definition, context.watermark
        assert mark is not None
        assert definition.rows is not None
        assert definition.function is not None
        self._context, self._source = context, source
        self._rows, self._rows_then = definition.rows, context.definition_then.rows
        self._columns = {column.name: column for column in definition.rows.columns}
        self._inputs, self._inherited = definition.function.inputs, definition.inherited
        self._now, self._then = source.dataset_now, then
        paths = [column.path for column in definition.rows.columns if column.path is not None]
        paths = list(dict.fromkeys([*source.source.reads, *paths]))
        self._difference, _ = compare_in_time(context, source, paths)
        # Whether only Spark can tell which rows match the query.
        self._is_spark = any(
            each and each.has_sparks_filter for each in (self._rows, self._rows_then)
        )
        self._limit = context.spec.output_limit
        self._cut = mark.cut[0] if mark.cut is not None else None
        self._failed = read_failed(context.place, mark.failed, mark.failed_rows)

    def plan(self) -> Plan:
        changed = self._difference.changed
        again, other = self._find_again()
        if self._is_spark:
            # More is known after asking Spark.
            maybe, everybody = int((~again).sum()), np.ones(len(changed.ids), bool)
            work, counts = self._decide(again, ~everybody, everybody, everybody)
            counts["may have come into the query or left it"] = maybe
            return self._to_plan(UnsettledRows(self) if maybe else work, work, counts, maybe)
        work, counts = self._decide(again, other, self._passes(changed), self._passed(changed.ids))
        return self._to_plan(work, work, counts)

    def settle(self, match: Match) -> ChunkWork:
        """What to do, once rows can be matched with the filter."""
        changed = self._difference.changed
        again, other = self._find_again()
        maybe = changed.take(~again)
        passes, passed = np.ones(len(changed.ids), bool), np.ones(len(changed.ids), bool)
        passes[~again] = is_among(maybe.ids, match(self._now, maybe, self._rows).ids)
        # Rows with children matched the query; others may have matched and made nothing.
        childless = passes & ~again
        childless[childless] = ~is_among(
            changed.ids[childless],
            sort_distinct(find_children(self._context.view, changed.ids[childless]).sources),
        )
        if childless.any():
            before = scan_all(self._then)
            before = before.take(is_among(before.ids, changed.ids[childless]))
            assert self._rows_then is not None
            matched = match(self._then, before, self._rows_then)
            passed[childless] = is_among(changed.ids[childless], matched.ids)
        work, _ = self._decide(again, other, passes, passed)
        return work

    def _find_again(self) -> tuple[Mask, Mask]:
        """Which changed rows have other inputs, and which other inherited values."""
        again, other = self._differs(self._inputs), self._differs(self._inherited)
        return again | self._is_unknown(self._difference.changed.ids), other

    def _decide(
        self, again: Mask, other: Mask, passes: Mask, passed: Mask
    ) -> tuple[ChunkWork, dict[str, int]]:
        """The work, given which changed rows match the query now and before."""
        difference, changed = self._difference, self._difference.changed
        inherits = passes & passed & ~again & other
        follow, known = changed.ids[inherits], _no_ids()
        is_called = passes & (again | ~passed)
        if not self._can_follow():
            follow, known = known, (follow if self._can_read() else known)
            is_called |= inherits
        call = changed.take(is_called)
        inserted = difference.inserted.take(self._passes(difference.inserted))
        missing = self._missing()
        gone = np.sort(np.concatenate([difference.deleted.ids, changed.ids[~passes]]))
        stale = np.concatenate([gone, call.ids, follow])
        # Only some children of the row that the limit cut are in the view.
        cut = self._cut if self._cut is not None and (missing.ids == self._cut).any() else None
        if self._limit is None and cut is not None:
            stale = np.append(stale, cut)
        counts = {
            "are new": len(inserted.ids),
            "have other inputs, or come into the query": len(call.ids) - len(known),
            "have only other inherited values": len(follow) + len(known),
            "are gone": len(gone),
            "failed before or lie beyond the last limit": len(missing.ids),
        }
        calls = join_rows(inserted, call, missing)
        if self._limit is not None:
            limited = self._limited(calls, follow, gone, stale, cut)
            return replace(limited, known=known), counts
        removed = find_children(self._context.view, stale)
        work = ChunkWork(call=calls, follow=follow, gone=gone, removed=removed, known=known)
        return work, counts

    def _limited(
        self, calls: RowPlaces, follow: Ids, gone: Ids, stale: Ids, cut: int | None
    ) -> ChunkWork:
        """The same work, without rows that cannot be admitted."""
        assert self._limit is not None
        children = find_children(self._context.view)
        is_stale = is_among(children.sources, np.sort(stale))
        kept = children.take(~is_stale)
        below = np.searchsorted(kept.sources, calls.ids)
        if cut is not None:
            partial = kept.sources == cut
            below -= np.where(calls.ids > cut, partial.sum(), 0)
            below += np.where(calls.ids == cut, partial.sum(), 0)
        full = np.flatnonzero(below >= self._limit)
        if len(full):
            calls = calls.take(np.arange(full[0]))
        return ChunkWork(
            call=calls,
            follow=follow,
            gone=gone,
            removed=children.take(is_stale),
            kept=kept,
            cut=cut if (calls.ids == cut).any() else None,
            is_cut=bool(len(full)),
        )

    def _to_plan(
        self,
        todo: ChunkWork | UnsettledRows,
        work: ChunkWork,
        counts: Mapping[str, int],
        maybe: int = 0,
    ) -> Plan:
        assert work.call is not None
        assert work.removed is not None
        calls = len(work.call.ids)
        over = 0
        if work.kept is not None and self._limit is not None:
            over = max(0, len(work.kept.sources) - self._limit)
        is_gone = is_among(work.removed.sources, work.gone)
        # Failed rows that are not called again are dropped.
        known = calls, len(work.follow), len(work.removed.sources), over, len(self._failed)
        if not any(known) and not maybe:
            return plan_nothing("no row that the chunker or an inherited column reads has changed")
        told = [f"{count} {what}" for what, count in counts.items() if count]
        if over:
            told.append(f"{over} of the view's are over the limit")
        # What is made of rows that have children in the view is no insertion.
        is_new = ~is_among(work.call.ids, sort_distinct(work.removed.sources))
        with_children = sort_distinct(work.removed.sources[~is_gone])
        # The function's results, or Spark, decide which rows are admitted, and so which have to go.
        open_count: Unknown | None = None
        if maybe or (calls and self._is_spark):
            open_count = FILTERED
        elif calls and self._limit is not None:
            open_count = LIMITED
        return Plan(
            mode="incremental",
            reason=f"of the source's rows {', '.join(told) or 'those that failed are gone'}",
            rows_to_insert=MADE if open_count or is_new.any() else 0,
            rows_to_update=open_count or count_updates(work, with_children),
            rows_to_delete=open_count or int(is_gone.sum()) + over,
            function_calls=open_count or calls - len(work.known),
            fragments=self._difference.fragments,
            work=todo,
        )

    # Rows ------------------------------------------------------------------------------------

    def _is_unknown(self, ids: Ids) -> Mask:
        """Whether the view lacks some or all of what the function makes of each row."""
        found = self._failed.contains(ids)
        return found if self._cut is None else found | (ids >= self._cut)

    def _missing(self) -> RowPlaces:
        """Unchanged rows that the function must be called for nevertheless."""
        if not len(self._failed) and self._cut is None:
            return RowPlaces(*[_no_ids()] * 3)
        rows = scan_all(self._now)
        known = np.sort(
            np.concatenate([self._difference.inserted.ids, self._difference.changed.ids])
        )
        rows = rows.take(self._is_unknown(rows.ids) & ~is_among(rows.ids, known))
        return rows.take(self._passes(rows))

    def _passes(self, rows: RowPlaces) -> Mask:
        """Whether each row of the new version matches the query; maybe, when only Spark knows."""
        where = self._rows.filter_for_lance
        if where is None or not len(rows.ids):
            return np.ones(len(rows.ids), bool)
        return find_taken(self._now, rows, where)

    def _passed(self, ids: Ids) -> Mask:
        """Whether each row of the old version matched the query, as far as known."""
        assert self._rows_then is not None
        where = self._rows_then.filter_for_lance
        if where is None or not len(ids):
            return np.ones(len(ids), bool)
        if len(ids) <= MAX_TAKEN:
            (found,) = take(self._then, ids, [where])
            return np.asarray(found.fill_null(False))
        holding = [fragment.fragment_id for fragment in self._then.get_fragments()]
        parts = [found for found, _, _ in scan_rows(self._then, holding, where)]
        return is_among(ids, np.sort(np.concatenate([_no_ids(), *parts])))

    def _can_follow(self) -> bool:
        """Whether children can get new inherited values, read without Spark."""
        columns = [self._columns[name] for name in self._inherited]
        paths = [each.path for each in columns if each.path is not None]
        if self._limit is not None or any(has_blobs(get_field(self._now, p).lance) for p in paths):
            return False
        return len(paths) == len(columns) or self._rows.engine == "lance"

    def _can_read(self) -> bool:
        """Whether the function's results can be read from the view."""
        view, inherited = self._context.view, (*self._inherited, SOURCE_ROW_ID, CHILD_INDEX)
        fields = [each for each in view.lance_schema.fields() if each.name() not in inherited]
        return not any(has_blobs(each) for each in fields)

    def _differs(self, names: Sequence[str]) -> Mask:
        assert self._rows_then is not None
        return differs_in(self._rows, self._rows_then, names, self._source, self._difference)


def _no_ids() -> Ids:
    return np.empty(0, np.int64)
