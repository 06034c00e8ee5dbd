"""Compute touched groups again: only their rows go into Spark.

What is below `read_groups_kernel` runs in Python workers, which need penstock installed.
"""

from collections.abc import Iterator
from functools import partial

import numpy as np
import pyarrow as pa
from msgspec import Struct, json

from penstock.jobs.refresh.context import Plan, ViewChange, Work
from penstock.jobs.refresh.groups.key_sets import KeySet
from penstock.jobs.refresh.groups.plan import TouchedGroups, key_paths
from penstock.jobs.refresh.queries import choose_engine, run_query
from penstock.jobs.refresh.whole import run as whole
from penstock.jobs.spark.lance_source import (
    FragmentPiece,
    Scan,
    load_with,
    make_scan,
    show_conditions,
)
from penstock.jobs.spark.sql_sessions import open_sql
from penstock.jobs.spark.tasks import Kernel
from penstock.jobs.spark.types import cast_in
from penstock.lance.columns.fields import show_path
from penstock.lance.read.scans import offsets_of, quote_path, scan_expressions, scan_rows
from penstock.lance.session.remote import open_version
from penstock.lance.write.column_files import get_fragment


class GroupsOrder(Struct, frozen=True):
    """Everything that workers need; sent in the kernel's closure."""

    scan: Scan
    # Fields that rows are grouped by, and the wanted groups.
    keys: tuple[str, ...]
    groups: bytes
    # In Lance's SQL; rows that do not match are ignored.
    where: str | None = None


def run(work: Work, plan: Plan) -> ViewChange:
    """Compute the touched groups, or all of them."""
    if plan.mode == "full":
        return whole.run(work, plan)
    touched = plan.work
    assert isinstance(touched, TouchedGroups)
    (source,) = work.sources.values()
    groups = work.definition.groups
    assert groups is not None
    engine = choose_engine(work)
    paths = tuple(key_paths(groups))
    reads = (*source.source.reads, *paths)
    scan = make_scan(source.dataset_now, source.location, reads, work.attempt.job, engine.slots)
    order = GroupsOrder(scan, paths, touched.groups.encode(), groups.lance_filter)
    with open_sql(engine, 0) as sql:
        frame = load_with(sql, scan, read_groups_kernel(order))
        names = tuple(key.name for key in groups.keys)
        written = run_query(work, sql, {source.source.name: frame}, names, touched.known)
    rows = sum(each.rows for each in written)
    updated = sum(each.known for each in written)
    return ViewChange(
        removes=touched.ids,
        fragments=tuple(fragment for each in written for fragment in each.fragments),
        rows_inserted=rows - updated,
        rows_updated=updated,
        rows_deleted=len(touched.ids) - updated,
    )


def read_groups_kernel(order: GroupsOrder) -> Kernel:
    """A kernel that gives Spark all rows of some groups."""
    return partial(_read, json.encode(order))


def _read(encoded: bytes, numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    order = json.decode(encoded, type=GroupsOrder)
    groups = KeySet.decode(order.groups)
    for batch in numbers:
        for number in batch.column(0).to_pylist():
            for piece in order.scan.tasks[number]:
                yield from read_groups(order, groups, piece)


def read_groups(
    order: GroupsOrder, groups: KeySet, piece: FragmentPiece
) -> Iterator[pa.RecordBatch]:
    """Rows of a piece that belong to the groups."""
    scan = order.scan
    dataset = open_version(scan.location, scan.version, scan.reader)
    fragment = get_fragment(dataset, piece.fragment)
    # First the keys alone, then the rest of the wanted rows.
    columns = {str(n): quote_path(path) for n, path in enumerate(order.keys)}
    wanted = np.zeros(fragment.physical_rows, bool)
    where = show_conditions(piece, order.where)
    for batch in scan_expressions(dataset, fragment, columns, where):
        wanted[offsets_of(batch)] = groups.contains([batch.column(name) for name in columns])
    if not wanted.any():
        return
    paths = [show_path((name,)) for name in scan.columns]
    for batch in scan_rows(dataset, fragment, paths, wanted):
        taken = batch.select([str(n) for n, _ in enumerate(paths)])
        yield cast_in(taken.rename_columns(list(scan.columns)))
