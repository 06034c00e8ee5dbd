"""Compute a whole view by Spark SQL over its sources."""

from penstock.jobs.refresh.context import Plan, ViewChange, Work
from penstock.jobs.refresh.frames import count_rows, load_frames
from penstock.jobs.refresh.queries import choose_engine, run_query
from penstock.jobs.spark.sql_sessions import open_sql


def run(work: Work, plan: Plan) -> ViewChange:
    """Compute all rows; they replace those that the view has."""
    engine = choose_engine(work)
    total = count_rows(work)
    work.attempt.progress(rows_total=total)
    with open_sql(engine, total) as sql:
        written = run_query(work, sql, load_frames(work, sql))
    return ViewChange(
        removes="all",
        fragments=tuple(fragment for each in written for fragment in each.fragments),
        rows_inserted=sum(each.rows for each in written),
        rows_deleted=work.view.count_rows(),
        rows_read=total,
    )
