"""Plan the alteration of a chunker's view.

Children stay while the new query takes their source row, and nothing that they keep has changed.
Another function is called for every row, and those of its children that the view has already stay.
Inherited columns that are new are filled in afterwards.
"""

from collections.abc import Sequence

import numpy as np
from lance import LanceDataset

from penstock.errors import ColumnNotFound
from penstock.jobs.refresh.altering.changes import (
    compare_definitions,
    is_same_function,
    list_reads,
)
from penstock.jobs.refresh.chunks.children import find_children
from penstock.jobs.refresh.chunks.plan import (
    FILTERED,
    MADE,
    ChunkWork,
    Match,
    UnsettledRows,
    count_updates,
    plan_all,
)
from penstock.jobs.refresh.context import Context, Plan, SourceVersions
from penstock.jobs.refresh.inputs import reads_differ
from penstock.jobs.refresh.view_notes import read_failed
from penstock.lance.diff.row_diff import find_taken, scan_all
from penstock.lance.diff.row_sets import Ids, RowPlaces, is_among, sort_distinct
from penstock.model.views import Definition, Rows


def plan(context: Context) -> Plan:
    """Plan the alteration, as far as that is possible without Spark."""
    (source,) = context.sources.values()
    then = source.dataset_then
    assert then is not None
    try:
        planner = _Planner(context, source, then)
    except ColumnNotFound as error:
        return plan_all(context, source, error.message)
    rows = _rows_of(context.definition)
    if rows.has_sparks_filter:
        return Plan(
            mode="incremental",
            reason=planner.reason,
            rows_to_insert=FILTERED,
            rows_to_update=FILTERED,
            rows_to_delete=FILTERED,
            function_calls=FILTERED,
            fragments=len(source.dataset_now.get_fragments()),
            work=UnsettledRows(planner),
        )
    work = planner.settle(_match_by_lance)
    assert work.call is not None
    assert work.removed is not None
    is_gone = is_among(work.removed.sources, work.gone)
    calls = len(work.call.ids) - len(work.known)
    return Plan(
        mode="incremental",
        reason=planner.reason,
        rows_to_insert=MADE if calls else 0,
        rows_to_update=count_updates(work, sort_distinct(work.removed.sources[~is_gone])),
        rows_to_delete=int(is_gone.sum()),
        function_calls=calls,
        fragments=len(np.unique(work.call.fragments)),
        work=work,
    )


class _Planner:
    """Finds the source rows that the function is called for, and the children that go."""

    def __init__(self, context: Context, source: SourceVersions, then: LanceDataset) -> None:
        mark = context.watermark
        assert mark is not None
        self._before, self._view = context.definition_before, context.view
        self._rows_then = _rows_of(context.definition_then)
        self._rows = _rows_of(context.definition)
        self._now, self._then = source.dataset_now, then
        function = context.definition.function
        assert function is not None
        self._is_same = is_same_function(self._before, context.definition, function)
        self.reason = "the view is altered"
        if not self._is_same:
            self.reason += ", and another function makes its rows, or the same of other columns"
            return
        changes = compare_definitions(self._before, context.definition)
        self._inherited = [n for n in context.definition.inherited if n in changes.kept]
        reads = list_reads(self._before, tuple(self._inherited))
        self._difference = source.compare(reads)
        self._failed = read_failed(context.place, mark.failed, mark.failed_rows)

    def settle(self, match: Match) -> ChunkWork:
        """The work, given a function that tells which rows of a version match a query."""
        rows = match(self._now, scan_all(self._now), self._rows)
        children = find_children(self._view)
        is_known = inherits = np.zeros(len(rows.ids), bool)
        if self._is_same:
            is_known = is_among(rows.ids, self._find_called(children.sources, match))
            is_known &= ~is_among(rows.ids, self._find_changed(()))
            is_known &= ~self._failed.contains(rows.ids)
            inherits = is_known & is_among(rows.ids, self._find_changed(self._inherited))
        call = rows.take(~is_known | inherits)
        known = sort_distinct(children.sources)
        gone = known[~is_among(known, rows.ids)]
        stale = np.sort(np.concatenate([gone, call.ids]))
        return ChunkWork(
            call=call,
            follow=np.empty(0, np.int64),
            gone=gone,
            removed=children.take(is_among(children.sources, stale)),
            known=rows.ids[inherits],
        )

    def _find_called(self, with_children: Ids, match: Match) -> Ids:
        """The source rows that the function was called for; at least those with children."""
        rows = self._rows_then
        if rows.has_sparks_filter and match is _match_by_lance:
            return sort_distinct(with_children)
        return match(self._then, scan_all(self._then), rows).ids

    def _find_changed(self, names: Sequence[str]) -> Ids:
        """Rows with other inputs of the function, or with others in one of these columns too."""
        differs = reads_differ(list_reads(self._before, tuple(names)), self._difference)
        return self._difference.changed.ids[differs]


def _match_by_lance(dataset: LanceDataset, rows: RowPlaces, query: Rows) -> RowPlaces:
    where = query.filter_for_lance
    return rows if where is None else rows.take(find_taken(dataset, rows, where))


def _rows_of(definition: Definition) -> Rows:
    assert definition.rows is not None
    return definition.rows
