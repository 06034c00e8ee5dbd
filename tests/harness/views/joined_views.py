"""Tables that are joined, with keys of all kinds, and views of them as a server defines them."""

from pathlib import Path
from typing import Any

import lance
import pyarrow as pa

from penstock.jobs.spark.tasks import Engine
from penstock.model.views import RefreshResult
from tests.harness.views.local_views import LocalView
from tests.harness.views.sql_views import define_sql, recompute, rows_of, write_source

NAN = float("nan")
FLOATS = (NAN, -0.0, 0.0, None, 1.5)


def facts(start: int, count: int, dims: int = 10) -> pa.Table:
    ids = range(start, start + count)
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "dim": pa.array([None if n % 9 == 8 else n % (dims + 2) for n in ids], pa.int64()),
            "f": pa.array([FLOATS[n % 5] for n in ids], pa.float64()),
            "v": pa.array([n % 6 for n in ids], pa.int32()),
            "other": pa.array([0] * count, pa.int64()),
        }
    )


def dims(count: int = 10) -> pa.Table:
    ids = range(count)
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "name": pa.array([f"d{n % 4}" for n in ids]),
            "place": pa.array([None if n % 5 == 4 else f"p{n % 3}" for n in ids]),
            "f": pa.array([FLOATS[n % 5] for n in ids], pa.float64()),
        }
    )


def places() -> pa.Table:
    return pa.table({"code": ["p0", "p1", "p2"], "size": pa.array([1, 2, 3], pa.int32())})


class JoinedView:
    """A view of facts, dims and places, which must be what Spark makes of them."""

    def __init__(
        self, folder: Path, engine: Engine, sql: str, name: str = "view", **options: Any
    ) -> None:
        self.folder, self.engine = folder, engine
        if not (folder / "facts").exists():
            write_source(folder, "facts", facts(0, 60), files=3)
            write_source(folder, "dims", dims())
            write_source(folder, "places", places(), files=1)
        tables = [each.name for each in folder.iterdir() if (each / "_versions").exists()]
        definition = define_sql(folder, sql, *sorted(tables), **options)
        self.view = LocalView(folder, definition, engine, name).create()

    def table(self, name: str) -> lance.LanceDataset:
        return lance.dataset(str(self.folder / name))

    def insert(self, table: str, /, **row: Any) -> None:
        dataset = self.table(table)
        dataset.insert(pa.Table.from_pylist([row], dataset.schema))

    def check(self, mode: str = "incremental", **options: Any) -> RefreshResult:
        """Refresh it; it must be right then, and have been refreshed in that way."""
        wanted: Any = {"mode": "incremental"} if mode == "incremental" else {}
        done = self.view.refresh(**wanted, **options)
        assert done.mode == mode, done.reason
        self.check_rows(done.reason)
        return done

    def check_rows(self, note: object = "") -> None:
        ids = self.view.definition.keys.row_ids if self.view.definition.keys else ()
        assert rows_of(self.view, ids) == recompute(self.view, self.engine), note
