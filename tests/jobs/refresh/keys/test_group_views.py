"""Views that Spark SQL computes group by group: always what plain Spark gives."""

from pathlib import Path

import pyarrow as pa
import pytest

from penstock.jobs.spark.tasks import Engine
from tests.harness.views.group_views import NAN, NEW, grouped_rows, grouped_view
from tests.harness.views.local_views import LocalView
from tests.harness.views.sql_views import define_query, recompute, rows_of, write_source


def test_only_touched_groups_are_computed_again(engine: Engine, tmp_path: Path) -> None:
    source = write_source(tmp_path, "t", grouped_rows(0, 300), files=4)
    view = grouped_view(tmp_path, engine, filters={"t": "v <> 5"})
    assert view.refresh().mode == "full"
    assert rows_of(view) == recompute(view, engine) != []
    before = {row["_rowid"]: row for row in view.open().to_table(with_row_id=True).to_pylist()}
    # A row goes from one group to another, one leaves the filter, some come into a new group.
    source.update({"k": "'k2'"}, where="id = 1")
    source.update({"v": "5"}, where="id = 3")
    source.insert(pa.Table.from_pylist([NEW, NEW], source.schema))
    done = view.refresh()
    assert (done.mode, done.rows_inserted, done.rows_updated, done.rows_deleted) == (
        "incremental",
        1,
        3,
        0,
    )
    assert rows_of(view) == recompute(view, engine)
    after = {row["_rowid"]: row for row in view.open().to_table(with_row_id=True).to_pylist()}
    assert len(before.keys() & after.keys()) == len(before) - 3
    # The whole group goes.
    source.delete("k = 'new'")
    done = view.refresh(verify=True)
    assert (done.mode, done.rows_deleted) == ("incremental", 1)
    assert done.certificate is not None
    assert done.certificate["is_equal"]
    assert rows_of(view) == recompute(view, engine)


@pytest.mark.slow
def test_keys_are_equal_as_spark_has_them(engine: Engine, tmp_path: Path) -> None:
    source = write_source(tmp_path, "t", grouped_rows(0, 300))
    view = grouped_view(tmp_path, engine)
    view.refresh()
    rows = [{**NEW, "k": None, "f": value} for value in (NAN, -0.0, 0.0, None)]
    source.insert(pa.Table.from_pylist(rows, source.schema))
    done = view.refresh()
    assert (done.mode, done.rows_updated, done.rows_inserted) == ("incremental", 3, 0)
    assert rows_of(view) == recompute(view, engine)


@pytest.mark.slow
def test_when_most_groups_changed_all_are_computed_at_once(engine: Engine, tmp_path: Path) -> None:
    table = pa.table({"k": list(range(60)) * 2, "v": [1] * 120})
    source = write_source(tmp_path, "t", table)
    definition = define_query(
        "SELECT k, sum(v) AS total FROM t GROUP BY k",
        {"k": pa.int64(), "total": pa.int64()},
        {"t": ("k", "v")},
        {"k": "k"},
    )
    view = LocalView(tmp_path, definition, engine).create()
    view.refresh()
    source.update({"v": "2"}, where="k < 40")
    assert view.explain()["reason"] == "80 rows changed in 40 of the view's 60 rows"
    assert view.refresh().mode == "full"
    assert rows_of(view) == recompute(view, engine)
    source.update({"v": "3"}, where="k < 40")
    assert view.refresh(mode="incremental").mode == "incremental"
    assert rows_of(view) == recompute(view, engine)


@pytest.mark.slow
def test_a_key_that_is_rounded_in_the_view_is_no_key_there(engine: Engine, tmp_path: Path) -> None:
    source = write_source(tmp_path, "t", pa.table({"k": [0.1, 0.2], "v": [1, 2]}))
    definition = define_query(
        "SELECT k, sum(v) AS total FROM t GROUP BY k",
        {"k": pa.float32(), "total": pa.int64()},
        {"t": ("k", "v")},
        {"k": "k"},
    )
    view = LocalView(tmp_path, definition, engine).create()
    view.refresh()
    source.update({"v": "5"}, where="v = 1")
    done = view.refresh()
    assert (done.mode, done.reason) == ("full", "k is double, and float in the view")
    assert sorted(row["total"] for row in view.open().to_table().to_pylist()) == [2, 5]
