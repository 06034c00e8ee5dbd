"""Views over rows whose query Spark evaluates, and workers of Spark's for those that Lance does."""

from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

from penstock.errors import InvalidRequest
from penstock.jobs.refresh.run import run_refresh, sweep_refresh
from penstock.jobs.spark.tasks import Engine
from penstock.lance.session.remote import RemoteCatalog
from tests.harness.clients.pylance import connect
from tests.harness.data.sources import SourceHistory, some_rows
from tests.harness.data.tables import new_name
from tests.harness.jobs.function_tables import store
from tests.harness.jobs.held_attempt import HeldAttempt
from tests.harness.processes.servers import Server
from tests.harness.views.local_views import LocalView, define

KINDS = {"id": pa.int64(), "tail": pa.string(), "part": pa.int64()}
# What Lance would not do: a negative position, and integer division.
COLUMNS = {"id": "id", "tail": "substring(source.s.x, -1)", "part": "id div 3"}
READS = ("id", "a", "s.x")
WHERE = "coalesce(a, 2) > 1"


def expected(source: lance.LanceDataset, limit: int | None = None) -> dict[int, tuple[Any, ...]]:
    rows = source.to_table(columns=["id", "a", "s"], with_row_id=True).to_pylist()
    rows.sort(key=lambda row: row["_rowid"])
    taken = [row for row in rows if row["a"] is None or row["a"] > 1][:limit]
    return {row["_rowid"]: (row["id"], row["s"]["x"][-1:], row["id"] // 3) for row in taken}


@pytest.mark.parametrize("limit", [None, 6])
def test_spark_evaluates_what_changed(engine: Engine, tmp_path: Path, limit: int | None) -> None:
    history = SourceHistory(tmp_path / "source", 1)
    definition = define(COLUMNS, KINDS, READS, where=WHERE, limit=limit, engine="spark")
    view = LocalView(tmp_path, definition, engine).create()
    assert view.refresh().mode == "full"
    assert view.rows() == expected(history.open(), limit)
    history.do_append()
    history.open().update({"a": "5"}, where="id = 1")
    history.open().update({"a": "0"}, where="id = 2")
    history.open().delete("id IN (0, 5)")
    assert view.refresh(source_task_size=3).mode == "incremental"
    assert view.rows() == expected(history.open(), limit)


def test_functions_come_after_sparks_query(engine: Engine, tmp_path: Path) -> None:
    history = SourceHistory(tmp_path / "source", 1)
    (tmp_path / "view").mkdir()
    log = tmp_path / "calls"
    function = store(tmp_path / "view", log, lambda tail: tail * 2, "1", inputs=("tail",))
    definition = define(
        COLUMNS, {"id": pa.int64(), "value": pa.string()}, READS, engine="spark",
        functions=[function],
    )  # fmt: skip
    view = LocalView(tmp_path, definition, engine).create()
    assert view.refresh().function_calls == 40
    history.open().update({"s": "named_struct('x', 'new', 'y', 1)"}, where="id = 3")
    done = view.refresh()
    assert (done.function_calls, done.calls_saved) == (1, 39)
    rows = history.open().to_table(["id", "s"], with_row_id=True).to_pylist()
    assert view.rows() == {r["_rowid"]: (r["id"], r["s"]["x"][-1:] * 2) for r in rows}


def test_a_value_that_cannot_be_computed_is_the_querys_fault(
    engine: Engine, tmp_path: Path
) -> None:
    SourceHistory(tmp_path / "source", 1)
    columns = {"id": "10 div (id - 7)"}
    definition = define(columns, {"id": pa.int64()}, ("id",), engine="spark")
    with pytest.raises(InvalidRequest, match="DIVIDE_BY_ZERO"):
        LocalView(tmp_path, definition, engine).create().refresh()


def test_workers_of_spark_refresh_a_view_of_a_catalog(engine: Engine, server: Server) -> None:
    namespace, name = connect(server), new_name()
    server.post(f"/v1/namespace/{name}/create").raise_for_status()

    def write(table: str, rows: pa.Table) -> None:
        lance.write_dataset(
            rows, namespace_client=namespace, table_id=[name, table], enable_stable_row_ids=True
        )

    def open_table(table: str) -> lance.LanceDataset:
        return lance.dataset(namespace_client=namespace, table_id=[name, table])

    write("source", some_rows(0, 30))
    kinds = {"id": pa.int64(), "twice": pa.int64()}
    definition = define({"id": "id", "twice": "a * 2"}, kinds, ("id", "a"), where="a > 0")
    view = LocalView(Path(), definition)
    schema = pa.schema([("__source_row_id", pa.int64()), *kinds.items()])
    write("view", schema.empty_table())
    source = definition.sources[0]
    from msgspec.structs import replace

    definition = replace(definition, sources=(replace(source, table=(name, "source")),))
    view.definition = definition
    catalog = RemoteCatalog(server.url)

    def refresh() -> Any:
        attempt = HeldAttempt()
        spec = replace(view.spec(), table=(name, "view"))
        done = run_refresh(spec, catalog, lambda: engine, attempt)
        sweep_refresh(spec, catalog, attempt.job, attempt.number)
        view.watermark = done.watermark
        return done

    def check() -> None:
        rows = open_table("source").to_table(["id", "a"], with_row_id=True).to_pylist()
        found = open_table("view").to_table().to_pylist()
        assert {row["__source_row_id"]: row["twice"] for row in found} == {
            row["_rowid"]: row["a"] * 2 for row in rows if row["a"]
        }

    assert refresh().mode == "full"
    check()
    open_table("source").update({"a": "9"}, where="id = 2")
    done = refresh()
    assert (done.mode, done.rows_updated, done.version) == ("incremental", 1, 3)
    check()
    assert refresh().mode == "none"
