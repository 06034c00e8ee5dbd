"""Plan views over partitions: which partitions the function is called for again.

A partition is made again when one of its rows was added, deleted, or changed in the function's
inputs. Rows of a query that only Spark computes are not known here: then the run compares what
Spark gives for each partition with the digest of the last time.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from lance import LanceDataset

from penstock.errors import ColumnNotFound
from penstock.jobs.refresh.context import Context, Plan, SourceVersions, Unknown, plan_nothing
from penstock.jobs.refresh.inputs import differs_in
from penstock.jobs.refresh.udtf.partitions import Division, Partitioning, divide, moved, number_of
from penstock.jobs.refresh.view_notes import read_failed, read_partitions
from penstock.jobs.refresh.whole.plan import has_changed
from penstock.lance.diff.equal import as_ids
from penstock.lance.diff.row_sets import Ids, sort_distinct
from penstock.lance.errors import translated
from penstock.model.views import PARTITION, Definition

SCAN_ROWS = 262_144
MADE = Unknown("the function decides how many rows it makes")


class SparkPartitions:
    """Partitions that Spark has to compute before it is known which of them changed."""


class PartitionRows(NamedTuple):
    """How many rows a partition has, and a digest of them."""

    rows: int
    digest: str


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class UdtfWork:
    """What to do, by the labels of partitions."""

    # None when Spark partitions the rows.
    how: Partitioning | None
    # Partitions to call the function for, with the number of rows of each.
    call: dict[str, int]
    # The view rows to remove, None for all; and the partitions that have some of them.
    removed: Ids | None
    had: frozenset[str]
    # How many of these rows belong to partitions that are gone.
    gone: int
    # How many partitions there are.
    of: int


def plan(context: Context) -> Plan:
    """Plan a refresh of a view over partitions."""
    if is_sparks(context.definition):
        return _plan_spark(context)
    (source,) = context.sources.values()
    how = to_partitioning(context.definition)
    now = divide(source.dataset_now, how)
    if context.watermark is None or source.dataset_then is None:
        return _plan_all(context, source, how, now, context.rebuild)
    if is_sparks(context.definition_then):
        return _plan_all(context, source, how, now, "its partitions were computed by Spark before")
    try:
        touched = _find_touched(context, source, source.dataset_then, how, now)
    except ColumnNotFound as error:
        return _plan_all(context, source, how, now, error.message)
    return _plan_some(context, source, how, now, *touched)


def is_sparks(definition: Definition) -> bool:
    """Whether only Spark computes the rows of the query."""
    return definition.rows is None or definition.rows.engine != "lance"


def choose_partitions(context: Context, found: Mapping[str, PartitionRows]) -> UdtfWork:
    """What to do, given all partitions that Spark has computed."""
    counts = {label: each.rows for label, each in found.items()}
    watermark = context.watermark
    if watermark is None or watermark.partitions is None:
        return UdtfWork(
            how=None, call=counts, removed=None, had=frozenset(), gone=0, of=len(counts)
        )
    known = read_partitions(context.place, watermark.partitions)
    touched = {label for label, rows in found.items() if known.get(label) != rows.digest}
    touched |= known.keys() - found.keys()
    failed = read_failed(context.place, watermark.failed, watermark.failed_rows)
    touched |= {label for label in found if failed.contains(np.array([number_of(label)])).any()}
    return _choose(context, None, counts, touched)


def _plan_spark(context: Context) -> Plan:
    unknown = Unknown("only Spark computes the rows of the partitions")
    fragments = sum(len(each.dataset_now.get_fragments()) for each in context.sources.values())
    watermark = context.watermark
    if watermark is None or watermark.partitions is None:
        return Plan(
            mode="full",
            reason=context.rebuild or "Spark has not computed its partitions before",
            rows_to_insert=MADE,
            rows_to_update=0,
            rows_to_delete=context.view.count_rows(),
            function_calls=unknown,
            fragments=fragments,
            work=SparkPartitions(),
        )
    why = [
        f"{'$'.join(s.source.table)} changed" for s in context.sources.values() if has_changed(s)
    ]
    if watermark.moment != context.moment:
        why.append("time has passed")
    if watermark.failed_rows:
        why.append(f"{watermark.failed_rows} partitions failed before")
    if context.spec.alteration is not None:
        why.append("the query was altered")
    if not why:
        return plan_nothing("nothing that the query reads has changed")
    return Plan(
        mode="incremental",
        reason=f"{', '.join(why)}; partitions whose rows differ are made again",
        rows_to_insert=unknown,
        rows_to_update=unknown,
        rows_to_delete=unknown,
        function_calls=unknown,
        fragments=fragments,
        work=SparkPartitions(),
    )


def to_partitioning(definition: Definition) -> Partitioning:
    """How the definition partitions its source's rows."""
    assert definition.rows is not None
    columns = {column.name: column for column in definition.rows.columns}
    expression = indexed = None
    if definition.partition_by is not None:
        expression = columns[definition.partition_by].expression
    elif definition.partition_by_indexed_column is not None:
        column = columns[definition.partition_by_indexed_column]
        indexed = column.path or column.name
    return Partitioning(definition.rows.filter, expression, indexed)


def _plan_all(
    context: Context, source: SourceVersions, how: Partitioning, now: Division, reason: str
) -> Plan:
    counts = count_partitions(now)
    return Plan(
        mode="full",
        reason=reason,
        rows_to_insert=MADE if counts else 0,
        rows_to_update=0,
        rows_to_delete=context.view.count_rows(),
        function_calls=len(counts),
        fragments=len(source.dataset_now.get_fragments()),
        work=UdtfWork(how=how, call=counts, removed=None, had=frozenset(), gone=0, of=len(counts)),
    )


def _find_touched(
    context: Context, source: SourceVersions, then: LanceDataset, how: Partitioning, now: Division
) -> tuple[set[str], int, int]:
    """The changed partitions, how many failed before, and how many fragments were read."""
    watermark = context.watermark
    assert watermark is not None
    definition = context.definition
    assert definition.rows is not None
    assert definition.function is not None
    # Partitioning columns, and which rows are in a partition, are compared separately.
    query, names = definition.rows, definition.function.inputs
    columns = {column.name: column for column in query.columns}
    paths = [path for name in names if (path := columns[name].path) is not None]
    reads = list(dict.fromkeys([*source.source.reads, *paths]))
    # Which rows the clock adds or removes shows by the partitions.
    difference = source.compare(reads)
    before = divide(then, to_partitioning(context.definition_then), is_strict=False)
    query_then = context.definition_then.rows
    assert query_then is not None
    differs = differs_in(query, query_then, names, source, difference)
    changed = difference.changed.ids[differs]
    changed = sort_distinct(changed, moved(now, before))
    came = np.setdiff1d(now.rows.ids, before.rows.ids, assume_unique=True)
    went = np.setdiff1d(before.rows.ids, now.rows.ids, assume_unique=True)
    touched = now.labels_of(sort_distinct(came, changed))
    touched |= before.labels_of(sort_distinct(went, changed))
    failed = read_failed(context.place, watermark.failed, watermark.failed_rows)
    if len(failed):
        numbers = np.array([number_of(label) for label in now.labels], np.int64)
        again = failed.contains(numbers)
        touched |= {label for label, is_failed in zip(now.labels, again, strict=True) if is_failed}
    return touched, len(failed), difference.fragments


def _plan_some(
    context: Context,
    source: SourceVersions,
    how: Partitioning,
    now: Division,
    touched: set[str],
    failed: int,
    fragments: int,
) -> Plan:
    if not touched and not failed:
        return plan_nothing("no row of any partition has changed in what the function reads")
    work = _choose(context, how, count_partitions(now), touched)
    if work.removed is None:
        reason = "the rows of the query have changed, and they are one partition"
    else:
        reason = (
            f"{len(work.call)} of {len(now.labels)} partitions have other rows or failed before, "
            f"{len(touched - work.call.keys())} are gone"
        )
    # What is made of partitions that the view has is no insertion.
    is_new = bool(work.call.keys() - work.had)
    return Plan(
        mode="incremental",
        reason=reason,
        rows_to_insert=MADE if is_new else 0,
        rows_to_update=len(work.had & work.call.keys()),
        rows_to_delete=work.gone,
        function_calls=len(work.call),
        fragments=fragments,
        work=work,
    )


def _choose(
    context: Context, how: Partitioning | None, counts: Mapping[str, int], touched: set[str]
) -> UdtfWork:
    """Call the function for touched partitions, and remove what the view has of them."""
    call = {label: rows for label, rows in counts.items() if label in touched}
    definition = context.definition
    if definition.partition_by is None and definition.partition_by_indexed_column is None:
        total = context.view.count_rows()
        removed, found = None, dict.fromkeys(touched, total) if total else {}
        # Without a touched partition nothing is removed.
        removed = None if touched else np.empty(0, np.int64)
    else:
        removed, found = _find_rows(context.view, touched)
    gone = sum(found[label] for label in touched - call.keys() if label in found)
    return UdtfWork(
        how=how, call=call, removed=removed, had=frozenset(found), gone=gone, of=len(counts)
    )


def count_partitions(divided: Division) -> dict[str, int]:
    """How many rows each partition has."""
    counts = np.bincount(divided.numbers, minlength=len(divided.labels))
    return dict(zip(divided.labels, counts.tolist(), strict=True))


def _find_rows(view: LanceDataset, labels: set[str]) -> tuple[Any, dict[str, int]]:
    """The view rows of these partitions, and how many each has."""
    parts, counts = [np.empty(0, np.int64)], dict[str, int]()
    wanted = pa.array(sorted(labels), pa.string())
    with translated():
        scanner = view.scanner(columns=[PARTITION], with_row_id=True, batch_size=SCAN_ROWS)
        for batch in scanner.to_batches():
            taken = batch.filter(pc.is_in(batch.column(PARTITION).cast(pa.string()), wanted))
            parts.append(as_ids(taken.column("_rowid")))
            for each in pc.value_counts(taken.column(PARTITION)).to_pylist():
                counts[each["values"]] = counts.get(each["values"], 0) + each["counts"]
    return np.concatenate(parts), counts
