"""Plan views of groups: groups with new, deleted or changed rows are computed again.

A group is touched when a row that has its key now, or had it before, changed. All rows of a touched
group are read again, so every aggregate is exact.
"""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from lance import LanceDataset

from penstock.errors import ColumnNotFound
from penstock.jobs.refresh.clock import compare_in_time
from penstock.jobs.refresh.context import Context, Plan, SourceVersions, Unknown, plan_nothing
from penstock.jobs.refresh.groups.key_sets import KeySet
from penstock.jobs.refresh.whole.plan import plan_all
from penstock.jobs.spark.types import to_spark_type
from penstock.lance.columns.fields import get_field
from penstock.lance.diff.equal import as_ids
from penstock.lance.diff.row_diff import Difference
from penstock.lance.diff.row_sets import Ids
from penstock.lance.errors import translated
from penstock.lance.read.by_id import RowReader
from penstock.lance.read.scans import quote_parts
from penstock.model.views import Groups

# Every worker must know the keys of all touched groups.
MAX_GROUPS = 100_000
# Beyond this share of rows, computing everything at once is no more work.
MOST_OF_THEM = 0.5
# A smaller view takes no time either way.
FEW_ROWS = 20
SCAN_ROWS = 262_144


@dataclass(frozen=True, slots=True, eq=False)
class TouchedGroups:
    """The groups to compute again, and the view rows that they replace."""

    groups: KeySet
    # Those of the groups that the view has.
    known: KeySet
    ids: Ids


def plan(context: Context) -> Plan:
    """Find the touched groups."""
    (source,) = context.sources.values()
    groups = context.definition.groups
    assert groups is not None
    if context.rebuild:
        return plan_all(context, context.rebuild)
    if obstacle := _find_clock_obstacle(context):
        return plan_all(context, obstacle)
    try:
        found, timed = compare_in_time(context, source, source.source.reads)
    except ColumnNotFound as error:
        return plan_all(context, error.message)
    if found.is_empty:
        return plan_nothing("nothing that the query reads has changed")
    if obstacle := find_obstacle(context, source, groups):
        return plan_all(context, obstacle)
    count = len(found.inserted.ids) + len(found.deleted.ids) + len(found.changed.ids)
    rows = f"{count} rows changed" + (f", {timed} of them as time passed," if timed else "")
    touched = find_touched(source, groups, found)
    if len(touched) > MAX_GROUPS:
        return plan_all(context, f"{rows} in {len(touched)} groups, which are many")
    work = find_known(context.view, groups, touched)
    total = context.view.count_rows()
    if total > FEW_ROWS and len(work.ids) > MOST_OF_THEM * total:
        reason = f"{rows} in {len(work.ids)} of the view's {total} groups"
        # Taking longer is no reason to refuse.
        if context.spec.mode != "incremental":
            return plan_all(context, reason)
    unknown = Unknown(
        f"Spark finds which of {len(touched)} groups, {len(work.ids)} of them in the view, still "
        f"have rows"
    )
    return Plan(
        mode="incremental",
        reason=f"{rows} in {len(touched)} groups",
        rows_to_insert=unknown,
        rows_to_update=unknown,
        rows_to_delete=unknown,
        fragments=len(source.dataset_now.get_fragments()),
        work=work,
    )


def _find_clock_obstacle(context: Context) -> str:
    """Why it cannot be found which groups change as time passes."""
    clock, watermark = context.definition.clock, context.watermark
    if clock is None or watermark is None or watermark.moment == context.moment:
        return ""
    if clock.beyond_filter:
        return "every group may change as time passes: it reads the clock outside of WHERE"
    return "" if clock.conditions is not None else "only Spark evaluates what WHERE asks the clock"


def find_obstacle(context: Context, source: SourceVersions, groups: Groups) -> str:
    """Why the view's groups cannot be found by their keys."""
    if not groups.keys:
        return f"{'$'.join(source.source.table)} changed, and all of it is one group"
    assert source.dataset_then is not None
    for key, path in zip(groups.keys, key_paths(groups), strict=True):
        now, then = (
            to_spark_type(get_field(dataset, path).lance.to_arrow())
            for dataset in (source.dataset_now, source.dataset_then)
        )
        held = to_spark_type(context.view.schema.field(key.name))
        if now != then:
            return f"{path} is {now} and was {then}"
        # A key that is rounded in the view is another key there.
        if now != held:
            return f"{path} is {now}, and {held} in the view"
    return ""


def find_touched(source: SourceVersions, groups: Groups, found: Difference) -> KeySet:
    """The groups of added, deleted and changed rows, as they are and as they were."""
    assert source.dataset_then is not None
    paths = key_paths(groups)
    # A row that only changed in other columns is in the same group as before.
    moved = found.changed.ids[found.differs(paths)]
    fragments = np.union1d(found.inserted.fragments, found.changed.fragments).tolist()
    came = np.concatenate([found.inserted.ids, found.changed.ids])
    now = RowReader(source.dataset_now, fragments).read(came, paths)
    before = {fragment.fragment_id for fragment in source.dataset_then.get_fragments()}
    if not len(moved):
        before &= set(np.unique(found.deleted.fragments).tolist())
    went = np.concatenate([found.deleted.ids, moved])
    then = RowReader(source.dataset_then, before).read(went, paths)
    return KeySet.join(KeySet(now), KeySet(then))


def find_known(view: LanceDataset, groups: Groups, touched: KeySet) -> TouchedGroups:
    """The view's rows for some groups."""
    columns = {str(number): quote_parts((key.name,)) for number, key in enumerate(groups.keys)}
    ids, keys = [np.empty(0, np.int64)], []
    with translated():
        scanner = view.scanner(columns=columns, with_row_id=True, batch_size=SCAN_ROWS)
        for batch in scanner.to_batches():
            taken = touched.contains([batch.column(name) for name in columns])
            ids.append(as_ids(batch.column("_rowid"))[taken])
            keys.append(batch.select(list(columns)).filter(pa.array(taken)))
        empty = scanner.projected_schema
    kinds = pa.schema([empty.field(name) for name in columns])
    table = pa.Table.from_batches(keys, kinds)
    known = KeySet([column.combine_chunks() for column in table.columns])
    return TouchedGroups(touched, known, np.concatenate(ids))


def key_paths(groups: Groups) -> list[str]:
    """The source's columns that rows are grouped by."""
    return [key.path or key.expression for key in groups.keys]
