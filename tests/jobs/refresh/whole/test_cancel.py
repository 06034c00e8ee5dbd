"""A canceled job ends the query that Spark works on for it."""

from pathlib import Path

import pyarrow as pa
import pytest

from penstock.jobs.engine.attempt import JobCanceled
from penstock.jobs.spark.tasks import Engine
from tests.harness.jobs.held_attempt import HeldAttempt
from tests.harness.views.local_views import LocalView
from tests.harness.views.sql_views import define_query, write_source


@pytest.mark.slow
def test_a_canceled_query_ends_and_leaves_nothing(engine: Engine, tmp_path: Path) -> None:
    # A minute of work; Spark ends a task when it takes its next batch of rows, so these are small.
    write_source(tmp_path, "t", pa.table({"a": range(40_000)}), files=200)
    sql = "SELECT sum(x.a * y.a % 7) AS n FROM t x JOIN t y ON x.a * y.a % 3 = 1"
    view = LocalView(tmp_path, define_query(sql, {"n": pa.int64()}, {"t": ("a",)}), engine).create()
    attempt = CanceledLater()
    with pytest.raises(JobCanceled):
        view.refresh(attempt)
    assert attempt.checks > 20
    # All of Spark is free again.
    sql = "SELECT count(*) AS n FROM t"
    view.definition = define_query(sql, {"n": pa.int64()}, {"t": ()})
    assert view.refresh().rows_inserted == 1


class CanceledLater(HeldAttempt):
    """An attempt that hears of a cancel when it has waited for Spark for a while."""

    checks = 0

    def check(self) -> None:
        self.checks += 1
        if self.checks > 20:
            raise JobCanceled
