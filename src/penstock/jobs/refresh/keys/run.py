"""Compute touched keys again: only rows that they need go into Spark."""

from collections.abc import Mapping

from penstock.jobs.refresh.context import Plan, ViewChange, Work
from penstock.jobs.refresh.frames import load_frames
from penstock.jobs.refresh.keys.needed import find_needed
from penstock.jobs.refresh.keys.plan import TouchedKeys
from penstock.jobs.refresh.keys.source_rows import FoundRows
from penstock.jobs.refresh.queries import choose_engine, run_query
from penstock.jobs.refresh.whole import run as whole
from penstock.jobs.spark.sql_sessions import open_sql
from penstock.model.views import Keys


def run(work: Work, plan: Plan) -> ViewChange:
    """Compute the rows with touched keys, or all of them."""
    keys = work.definition.keys
    assert keys is not None
    if plan.mode == "full":
        return whole.run(work, plan)
    engine = choose_engine(work)
    touched = plan.work
    assert isinstance(touched, TouchedKeys)
    needed = {
        occurrence.name: rows
        for branch in keys.branches
        for occurrence, rows in zip(
            branch.occurrences, find_needed(branch, touched.sources, touched.keys), strict=True
        )
    }
    total = _count(work, keys, needed)
    work.attempt.progress(rows_total=total)
    with open_sql(engine, total) as sql:
        frames = load_frames(work, sql, needed)
        written = run_query(work, sql, frames, touched.keys, touched.known)
    rows_made = sum(each.rows for each in written)
    # Rows that take the place of others with the same key.
    updated = min(sum(each.known for each in written), len(touched.ids))
    return ViewChange(
        removes=touched.ids,
        fragments=tuple(fragment for each in written for fragment in each.fragments),
        rows_inserted=rows_made - updated,
        rows_updated=updated,
        rows_deleted=len(touched.ids) - updated,
        rows_read=total,
    )


def _count(work: Work, keys: Keys, needed: Mapping[str, FoundRows | None]) -> int:
    """How many rows Spark gets."""
    sizes = {each.source.name: each.dataset_now.count_rows() for each in work.sources.values()}
    return sum(
        sizes[each.source] if (rows := needed[each.name]) is None else len(rows.ids)
        for branch in keys.branches
        for each in branch.occurrences
    )
