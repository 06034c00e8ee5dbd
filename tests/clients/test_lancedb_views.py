"""lancedb's remote connection, unmodified: materialized views, with a test as the runner."""

import time
from collections.abc import Callable
from typing import Any

import lancedb
import pyarrow as pa
import pytest

from tests.harness.data.arrow import people, send
from tests.harness.data.tables import new_name
from tests.harness.jobs.fake_runner import Runner
from tests.harness.processes.servers import Server


@pytest.fixture
def database(server: Server) -> Any:
    return lancedb.connect("db://x", api_key="k", host_override=server.url)


@pytest.fixture
def source(server: Server) -> str:
    name = new_name()
    send(server, f"/v1/table/{name}/create", people(1, 2, 3)).raise_for_status()
    return name


def lease(server: Server, id: str) -> dict[str, Any]:
    """A job; others of this server's tests may wait as well."""
    return next(job for job in Runner(server).lease(free=64) if job["id"] == id)


def test_a_view_is_created_opened_and_refreshed(server: Server, database: Any, source: str) -> None:
    name = f"{source}_view"
    made = database.create_materialized_view(
        name, source, select={"id": "id", "next": "id + 1"}, where="id > 1", with_no_data=True
    )
    assert made.name == name
    view = database.open_materialized_view(name)
    assert source in view.definition.query
    assert "id > 1" in view.definition.query
    assert view.table.count_rows() == 0
    assert name in database.list_materialized_views()
    job = view.refresh_async(full=True)
    leased = lease(server, job.id)
    assert leased["spec"]["mode"] == "full"
    known = leased["spec"]["definition"]["sources"][0]["id"]
    watermark = {"versions": {known: 1}, "digest": "d", "view_version": 2}
    result = {
        "version": 2,
        "mode": "full",
        "reason": "asked",
        "rows_inserted": 2,
        "source_versions": {source: 1},
        "watermark": watermark,
    }
    Runner(server).finish(leased, result=result).raise_for_status()
    done = job.wait()
    assert (done.mode, done.rows_written, done.source_version, done.version) == ("rebuild", 2, 1, 2)
    database.drop_materialized_view(name)
    assert name not in database.list_materialized_views()


def test_a_view_with_data_comes_with_a_job(server: Server, database: Any, source: str) -> None:
    name = f"{source}_view"
    job = database.create_materialized_view_async(name, source, select=["id"], limit=2)
    Runner(server).finish(lease(server, job.id)).raise_for_status()
    assert database.open_materialized_view(name).table.count_rows() == 0


def test_a_table_is_not_opened_as_a_view(database: Any, source: str) -> None:
    with pytest.raises(Exception, match="not a materialized view"):
        database.open_materialized_view(source)


def test_what_a_view_reads_is_refused_once_and_with_the_reason(database: Any, source: str) -> None:
    name = f"{source}_view"
    database.create_materialized_view(name, source, select={"id": "id"}, with_no_data=True)
    table = database.open_table(source)
    changes: list[Callable[[], Any]] = [
        lambda: table.drop_columns(["id"]),
        lambda: table.alter_columns({"path": "id", "data_type": pa.int32()}),
        lambda: database.drop_table(source),
    ]
    for change in changes:
        started = time.monotonic()
        with pytest.raises(Exception, match=f"read by {name}"):
            change()
        assert time.monotonic() - started < 1
