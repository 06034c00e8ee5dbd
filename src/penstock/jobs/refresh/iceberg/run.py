"""Compute rows of a query over Iceberg tables by Spark SQL: the new ones, or all."""

import numpy as np

from penstock.jobs.refresh.context import Plan, ViewChange, Work
from penstock.jobs.refresh.iceberg.plan import AppendedRows
from penstock.jobs.refresh.iceberg.scans import make_iceberg_scan
from penstock.jobs.refresh.queries import choose_engine, run_query
from penstock.jobs.refresh.whole import run as whole
from penstock.jobs.spark.iceberg_source import load_iceberg
from penstock.jobs.spark.sql_sessions import open_sql


def run(work: Work, plan: Plan) -> ViewChange:
    """Compute what the plan says; new rows join those that the view has."""
    if not isinstance(plan.work, AppendedRows):
        return whole.run(work, plan)
    (table,) = work.iceberg.values()
    engine = choose_engine(work)
    total = plan.work.rows or 0
    work.attempt.progress(rows_total=total)
    with open_sql(engine, total) as sql:
        scan = make_iceberg_scan(table, work.location.options, plan.work.snapshots)
        written = run_query(work, sql, {table.source.name: load_iceberg(sql, scan)})
    return ViewChange(
        removes=np.empty(0, np.int64),
        fragments=tuple(fragment for each in written for fragment in each.fragments),
        rows_inserted=sum(each.rows for each in written),
        rows_read=total,
    )
