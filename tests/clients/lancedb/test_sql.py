"""lancedb's SQL: statements by Arrow Flight, which the client finds at the port after ours."""

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

from tests.harness.clients.lancedb_modes import ASYNC, SYNC, Lake, covers, event_loop, some_rows
from tests.harness.data.tables import new_name
from tests.harness.processes import servers
from tests.harness.processes.servers import Server


@pytest.fixture(scope="module")
def flying(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server whose next port is Flight's."""
    port = servers.free_port()
    environ = {"PENSTOCK__SERVER__FLIGHT_PORT": str(port + 1)}
    folder = tmp_path_factory.mktemp("flying")
    with servers.running(folder, "--port", str(port), environ=environ) as started:
        yield started


@pytest.fixture(scope="module", params=[SYNC, ASYNC])
def lake(flying: Server, request: pytest.FixtureRequest) -> Iterator[Lake]:
    with event_loop() as runner:
        yield Lake(request.param, flying.url, runner)


@pytest.fixture
def table(lake: Lake) -> Any:
    return lake.done(lake.database.create_table(new_name(), some_rows(1, 2, 3)))


def read(lake: Lake, reader: Any) -> pa.Table:
    if lake.mode == SYNC:
        return reader.read_all()

    async def collect() -> pa.Table:
        return pa.Table.from_batches([batch async for batch in reader], reader.schema)

    return lake.done(collect())


@covers("connection", "execute_query")
def test_a_statement_gives_its_rows(lake: Lake, table: Any) -> None:
    sql = f"SELECT id, text FROM {table.name} WHERE id > 1"
    rows = read(lake, lake.done(lake.database.execute_query(sql)))
    assert sorted(rows["id"].to_pylist()) == [2, 3]
    assert rows.schema == pa.schema([("id", pa.int64()), ("text", pa.string())])


@covers("connection", "execute_query_async", "describe_query")
def test_a_statement_is_submitted_described_and_read_once(lake: Lake, table: Any) -> None:
    database = lake.database
    query = lake.done(database.execute_query_async(f"SELECT count(*) AS n FROM {table.name}"))
    told = lake.done(database.describe_query(query.id))
    assert (told.id, told.status) == (query.id, "finished")
    assert lake.done(query.describe()).expires_at is not None
    assert read(lake, lake.done(query.reader())).to_pylist() == [{"n": 3}]
    with pytest.raises(RuntimeError, match="consumed once"):
        lake.done(query.reader())


def test_names_are_looked_up_in_a_namespace(lake: Lake) -> None:
    space, database = new_name(), lake.database
    lake.done(database.create_namespace([space]))
    lake.done(database.create_namespace([space, "sub"]))
    path = [space, "sub"]
    lake.done(database.create_table("t", some_rows(1, 2), namespace_path=path))
    for sql, more in (
        ("SELECT id FROM t", {"default_namespace_path": path}),
        (f"SELECT id FROM {space}.sub.t", {}),
    ):
        assert read(lake, lake.done(database.execute_query(sql, **more))).num_rows == 2


def test_large_rows_come_whole(lake: Lake) -> None:
    name, texts = new_name(), ["x" * 3_000_000] * 20
    rows = pa.table({"id": pa.array(range(20), pa.int64()), "text": texts})
    lake.done(lake.database.create_table(name, rows))
    found = read(lake, lake.done(lake.database.execute_query(f"SELECT id, text FROM {name}")))
    assert found["id"].to_pylist() == list(range(20))
    assert found["text"].to_pylist() == texts


def test_what_cannot_be_answered_says_why(lake: Lake, table: Any) -> None:
    for sql, match in (
        (f"SELECT nothing FROM {table.name}", "column nothing does not exist"),
        (f"DELETE FROM {table.name}", "not a query"),
        (f"SELECT id FROM {table.name}x", f"there is {table.name}"),
        (f'SELECT "id" FROM {table.name}', "id"),
    ):
        with pytest.raises(RuntimeError, match=match):
            read(lake, lake.done(lake.database.execute_query(sql)))
    assert lake.done(table.count_rows()) == 3
