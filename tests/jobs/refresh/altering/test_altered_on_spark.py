"""Altered views whose queries Spark evaluates: the same rows stay, and the same are computed."""

from pathlib import Path

import pyarrow as pa

from penstock.jobs.spark.tasks import Engine
from tests.harness.data.sources import SourceHistory
from tests.harness.jobs.function_tables import store
from tests.harness.views.local_views import LocalView, define

READS = ("id", "a", "s.x")


def test_rows_that_spark_still_takes_stay(engine: Engine, tmp_path: Path) -> None:
    history = SourceHistory(tmp_path / "source", 1)
    (tmp_path / "view").mkdir()
    function = store(tmp_path / "view", tmp_path / "calls", lambda x: x * 2, "1", inputs=("x",))
    kinds = {"id": pa.int64(), "value": pa.string()}
    columns = {"id": "id", "x": "s.x"}
    first = define(columns, kinds, READS, where="id < 20", functions=[function])
    view = LocalView(tmp_path, first, engine).create()
    assert view.refresh().function_calls == 20
    view.open().add_columns({"note": "id + 1000"})
    # Spark's filter and one of its expressions; `id` and the function's column are as they were.
    second = define(
        {**columns, "part": "id div 3"}, {**kinds, "part": pa.int64()}, READS,
        where="id div 5 > 1", engine="spark", functions=[function], digest="2",
    )  # fmt: skip
    done = view.alter(second)
    rows = history.open().to_table(["id", "s"], with_row_id=True).to_pylist()
    taken = [row for row in rows if row["id"] // 5 > 1]
    assert view.rows() == {
        r["_rowid"]: (
            *(r["id"], r["s"]["x"] * 2, r["id"] // 3),
            r["id"] + 1000 if r["id"] < 20 else None,
        )
        for r in taken
    }
    assert done.function_calls == len([row for row in taken if row["id"] >= 20])
    history.open().update({"s": "named_struct('x', 'new', 'y', 1)"}, where="id = 15")
    assert view.refresh().function_calls == 1
    assert view.loose_files() == set()
