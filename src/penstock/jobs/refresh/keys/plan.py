"""Plan views that are followed by keys: what has a touched key is computed again.

A key is touched when a changed row belongs to it, now or before. All rows that touched keys need
are read again, so every join, aggregate and window is exact.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from lance import LanceDataset

from penstock.errors import ColumnNotFound
from penstock.jobs.refresh.clock import compare_in_time
from penstock.jobs.refresh.context import Context, Plan, SourceVersions, Unknown, plan_nothing
from penstock.jobs.refresh.keys.key_sets import KeySet
from penstock.jobs.refresh.keys.source_rows import SourceRows, TooManyRows
from penstock.jobs.refresh.keys.touched import find_touched
from penstock.jobs.refresh.whole.plan import plan_all
from penstock.jobs.spark.types import to_spark_type
from penstock.lance.columns.fields import get_field
from penstock.lance.diff.equal import as_ids
from penstock.lance.diff.row_sets import Ids
from penstock.lance.errors import translated
from penstock.lance.read.scans import quote_parts
from penstock.model.views import Keys

# Every worker must know all touched keys.
MAX_KEYS = 100_000
# Beyond this share of rows, computing everything at once is no more work.
MOST_OF_THEM = 0.5
# A smaller view takes no time either way.
FEW_ROWS = 20
SCAN_ROWS = 262_144


@dataclass(frozen=True, slots=True, eq=False)
class TouchedKeys:
    """The keys to compute again, and the view rows that they replace."""

    keys: KeySet
    # Those of the keys that the view has.
    known: KeySet
    ids: Ids
    # By `Source.name`.
    sources: Mapping[str, SourceRows]


def plan(context: Context) -> Plan:
    """Find the touched keys."""
    keys = context.definition.keys
    assert keys is not None
    if context.rebuild:
        return plan_all(context, context.rebuild)
    if obstacle := find_clock_obstacle(context, keys):
        return plan_all(context, obstacle)
    timed = 0
    sources: dict[str, SourceRows] = {}
    try:
        for source in context.sources.values():
            found, passed = compare_in_time(context, source, source.source.reads)
            sources[source.source.name] = SourceRows(source, None if found.is_empty else found)
            timed += passed
    except ColumnNotFound as error:
        return plan_all(context, error.message)
    count = sum(each.changed for each in sources.values())
    if not count:
        return plan_nothing("nothing that the query reads has changed")
    rows = f"{count} {'row' if count == 1 else 'rows'} changed" + (
        f", {timed} of them as time passed," if timed else ""
    )
    if obstacle := find_obstacle(context, keys):
        return plan_all(context, obstacle)
    try:
        parts = [found for each in keys.branches for found in find_touched(each, sources)]
    except TooManyRows:
        return plan_all(context, f"{rows} and too many rows are joined with them")
    touched = KeySet([pa.concat_arrays(each) for each in zip(*parts, strict=True)])
    reason = f"{rows} in {len(touched)} {name_keys(keys)}"
    if len(touched) > MAX_KEYS:
        return plan_all(context, f"{reason}, which are many")
    ids, known = find_known(context.view, keys, touched)
    total = context.view.count_rows()
    is_most = total > FEW_ROWS and len(ids) > MOST_OF_THEM * total
    # Taking longer is no reason to refuse.
    if is_most and context.spec.mode != "incremental":
        return plan_all(context, f"{rows} in {len(ids)} of the view's {total} rows")
    unknown = Unknown(
        f"Spark finds which of {len(touched)} {name_keys(keys)}, {len(known)} of them in the view, "
        f"still have rows"
    )
    return Plan(
        mode="incremental",
        reason=reason,
        rows_to_insert=unknown,
        rows_to_update=unknown,
        rows_to_delete=unknown,
        fragments=sum(len(each.dataset_now.get_fragments()) for each in context.sources.values()),
        work=TouchedKeys(touched, known, ids, sources),
    )


def name_keys(keys: Keys) -> str:
    """What one calls the keys."""
    return "joined rows" if keys.row_ids else "groups"


def find_clock_obstacle(context: Context, keys: Keys) -> str:
    """Why it cannot be found which keys change as time passes."""
    clock, watermark = context.definition.clock, context.watermark
    if clock is None or watermark is None or watermark.moment == context.moment:
        return ""
    if len(keys.branches) > 1 or len(keys.branches[0].occurrences) > 1:
        return "it reads the clock, and time has passed; only over one table is that followed"
    if clock.beyond_filter:
        return "every group may change as time passes: it reads the clock outside of WHERE"
    return "" if clock.conditions is not None else "only Spark evaluates what WHERE asks the clock"


def find_obstacle(context: Context, keys: Keys) -> str:
    """Why keys of the sources and of the view cannot be compared."""
    by_name = {each.source.name: each for each in context.sources.values()}
    for branch in keys.branches:
        for each in branch.occurrences:
            paths = [mine for mine, _ in each.pairs]
            paths += [its for child in branch.occurrences for _, its in child.pairs
                      if child.parent == branch.occurrences.index(each)]  # fmt: skip
            for path in paths:
                now, then = _list_types(by_name[each.source], path)
                if now != then:
                    return f"{path} is {now} and was {then}"
        for column, part in zip(keys.columns, branch.keys, strict=True):
            if part is None or part.path is None:
                continue
            source = by_name[branch.occurrences[part.occurrence].source]
            now, then = _list_types(source, part.path)
            held = to_spark_type(context.view.schema.field(column))
            if now != then:
                return f"{part.path} is {now} and was {then}"
            # A key that is rounded in the view is another key there.
            if now != held:
                return f"{part.path} is {now}, and {held} in the view"
    return ""


def _list_types(source: SourceVersions, path: str) -> tuple[str, str]:
    assert source.dataset_then is not None
    now, then = (
        to_spark_type(get_field(dataset, called).lance.to_arrow())
        for dataset, called in (
            (source.dataset_now, path),
            (source.dataset_then, source.path_then(path)),
        )
    )
    return now, then


def find_known(view: LanceDataset, keys: Keys, touched: KeySet) -> tuple[Ids, KeySet]:
    """The view's rows with some keys, and those of the keys that it has."""
    columns = {str(number): quote_parts((name,)) for number, name in enumerate(keys.columns)}
    ids, found = [np.empty(0, np.int64)], []
    with translated():
        scanner = view.scanner(columns=columns, with_row_id=True, batch_size=SCAN_ROWS)
        for batch in scanner.to_batches():
            taken = touched.contains([batch.column(name) for name in columns])
            ids.append(as_ids(batch.column("_rowid"))[taken])
            found.append(batch.select(list(columns)).filter(pa.array(taken)))
        empty = scanner.projected_schema
    kinds = pa.schema([empty.field(name) for name in columns])
    table = pa.Table.from_batches(found, kinds)
    known = KeySet([column.combine_chunks() for column in table.columns])
    return np.concatenate(ids), known
