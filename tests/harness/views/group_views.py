"""A view of groups and the table that it reads, with keys of all kinds."""

from pathlib import Path
from typing import Any

import pyarrow as pa

from penstock.jobs.spark.tasks import Engine
from tests.harness.views.local_views import LocalView
from tests.harness.views.sql_views import define_query

NAN = float("nan")
GROUPED = (
    "SELECT k, f, count(*) AS n, sum(v) AS total, min(v) AS low, max(t) AS high, avg(v) AS mean, "
    "count(DISTINCT t) AS kinds FROM t WHERE v <> 5 GROUP BY k, f HAVING count(*) > 1"
)
OUTPUTS = {
    "k": pa.string(),
    "f": pa.float64(),
    "n": pa.int64(),
    "total": pa.int64(),
    "low": pa.int32(),
    "high": pa.string(),
    "mean": pa.float64(),
    "kinds": pa.int64(),
}
NEW = {"id": 900, "k": "new", "f": 2.0, "v": 1, "t": "x", "other": 0}


def grouped_rows(start: int, count: int) -> pa.Table:
    ids = range(start, start + count)
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "k": pa.array([None if n % 7 == 0 else f"k{n % 5}" for n in ids], pa.string()),
            "f": pa.array([(NAN, -0.0, 0.0, None, 1.5)[n % 11 % 5] for n in ids], pa.float64()),
            "v": pa.array([n % 6 for n in ids], pa.int32()),
            "t": pa.array([f"t{n % 3}" for n in ids]),
            "other": pa.array([0] * count, pa.int64()),
        }
    )


def grouped_view(folder: Path, engine: Engine, **more: Any) -> LocalView:
    reads = {"t": ("k", "f", "v", "t")}
    definition = define_query(GROUPED, OUTPUTS, reads, {"k": "k", "f": "f"}, **more)
    return LocalView(folder, definition, engine).create()
