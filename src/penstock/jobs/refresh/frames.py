"""The tables of a view's query as Spark reads them: a frame for each name in its text."""

from collections.abc import Mapping
from typing import Any

from penstock.iceberg.tables.changes import count_rows as count_iceberg
from penstock.jobs.refresh.context import SourceVersions, Work
from penstock.jobs.refresh.iceberg.scans import make_iceberg_scan
from penstock.jobs.refresh.keys.source_rows import FoundRows
from penstock.jobs.spark.chosen_rows import load_chosen
from penstock.jobs.spark.iceberg_source import load_iceberg
from penstock.jobs.spark.lance_source import Scan, load, make_scan
from penstock.jobs.spark.tasks import Engine
from penstock.model.views import CheckedSql, Definition


def get_sql(definition: Definition) -> CheckedSql:
    """The query over the names of `load_frames`."""
    return definition.sql if definition.keys is None else definition.keys.sql


def count_rows(work: Work) -> int:
    """About how many rows the sources have."""
    lance = sum(each.dataset_now.count_rows() for each in work.sources.values())
    return lance + sum(count_iceberg(each.document) or 0 for each in work.iceberg.values())


def load_frames(
    work: Work, engine: Engine, needed: Mapping[str, FoundRows | None] | None = None
) -> dict[str, Any]:
    """The frames by their names in the query, some of them with the needed rows only."""
    keys = work.definition.keys
    if keys is None:
        frames = {
            each.source.name: load(engine, _scan(work, engine, each))
            for each in work.sources.values()
        }
        return frames | {
            each.source.name: load_iceberg(engine, make_iceberg_scan(each, work.location.options))
            for each in work.iceberg.values()
        }
    sources = {each.source.name: each for each in work.sources.values()}
    frames = {}
    for branch in keys.branches:
        for each in branch.occurrences:
            row_id = each.row_id if keys.row_ids else None
            scan = _scan(work, engine, sources[each.source], row_id)
            rows = None if needed is None else needed[each.name]
            frames[each.name] = (
                load(engine, scan)
                if rows is None
                else load_chosen(engine, scan, rows.ids, rows.addresses)
            )
    return frames


def _scan(work: Work, engine: Engine, source: SourceVersions, row_id: str | None = None) -> Scan:
    return make_scan(
        source.dataset_now,
        source.location,
        source.source.reads,
        work.attempt.job,
        engine.slots,
        row_id,
        source.source.filter,
    )
