"""lancedb's client: views that hold no rows, which are Iceberg views to everybody else."""

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from lancedb.remote.errors import HttpError
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.schema import Schema
from pyiceberg.types import LongType, NestedField
from pyiceberg.view.metadata import ViewVersion

import penstock
from tests.harness.clients import iceberg_requests as iceberg
from tests.harness.clients.lancedb_modes import SYNC, Lake, covers, some_rows
from tests.harness.data.tables import new_name
from tests.harness.processes.servers import Server

ONE = "SELECT id, text, vector FROM t WHERE id > 1"


@pytest.fixture
def space(lake: Lake) -> list[str]:
    """A namespace with the table t, whose ids are 1, 2 and 3."""
    name = new_name()
    lake.done(lake.database.create_namespace([name]))
    lake.done(lake.database.create_table("t", some_rows(1, 2, 3), namespace_path=[name]))
    return [name]


def open_view(lake: Lake, space: list[str], query: str = ONE) -> Any:
    """A view as its readers have it."""
    lake.done(lake.database.create_view("v", query, namespace_path=space))
    return lake.done(lake.database.open_table("v", namespace_path=space))


@covers("connection", "create_view", "describe_view", "list_views", "drop_view", "drop_view_async")
def test_a_view_is_made_told_listed_and_dropped(lake: Lake, space: list[str]) -> None:
    database = lake.database
    made = lake.done(database.create_view("v", ONE, namespace_path=space))
    told = lake.done(database.describe_view("v", namespace_path=space))
    assert told == made
    assert (told.name, told.query, told.default_database) == ("v", ONE, "x")
    assert told.namespace_path == told.default_namespace_path == space
    wanted = [("id", pa.int64()), ("text", pa.string()), ("vector", pa.list_(pa.float32()))]
    assert told.schema == pa.schema(wanted)
    assert lake.done(database.list_views(namespace_path=space)) == ["v"]
    lake.done(database.drop_view("v", namespace_path=space))
    assert lake.done(database.list_views(namespace_path=space)) == []
    lake.done(database.create_view("v", ONE, namespace_path=space))
    job = lake.done(database.drop_view_async("v", namespace_path=space))
    lake.done(job.wait())
    assert lake.done(database.list_views(namespace_path=space)) == []
    with pytest.raises(HttpError, match="does not exist"):
        lake.done(database.describe_view("v", namespace_path=space))


def test_a_view_at_the_root(lake: Lake) -> None:
    name = new_name()
    lake.done(lake.database.create_table(f"{name}t", some_rows(1, 2)))
    made = lake.done(lake.database.create_view(name, f"SELECT id FROM {name}t"))
    assert made.namespace_path == made.default_namespace_path == []
    assert name in lake.done(lake.database.list_views())
    view = lake.done(lake.database.open_table(name))
    assert lake.done(view.count_rows()) == 2
    lake.done(lake.database.drop_view(name))


def test_a_view_is_read_as_a_table_is(lake: Lake, space: list[str]) -> None:
    view = open_view(lake, space)
    assert lake.get(view, "schema").names == ["id", "text", "vector"]
    assert lake.get(view, "version") == 1
    assert lake.done(view.count_rows()) == 2
    assert lake.done(view.count_rows("id = 3")) == 1
    rows = lake.query(view).where("id < 3 AND text LIKE '%number 2'").select(["text"])
    assert lake.done(rows.to_list()) == [{"text": "world number 2"}]
    found = lake.query(view).select({"twice": "id * 2"}).limit(1).offset(1)
    assert lake.done(found.to_list()) == [{"twice": 6}]
    assert "LanceRead" in lake.done(lake.query(view).where("id = 2").explain_plan())
    # Rows are those of now.
    table = lake.done(lake.database.open_table("t", namespace_path=space))
    lake.done(table.add(some_rows(9)))
    assert lake.done(view.count_rows()) == 3


def test_a_view_of_one_table_is_searched(lake: Lake, space: list[str]) -> None:
    view = open_view(lake, space, "SELECT id AS number, vector AS place FROM t WHERE id > 1")
    vector = [1.0, 0.0, 0.0, 0.0]
    nearest = view.search(vector) if lake.mode == SYNC else view.query().nearest_to(vector)
    # Row 1 would be nearer, and is not in the view.
    (found,) = lake.done(nearest.select(["number"]).limit(1).to_list())
    assert (found["number"], found["_distance"]) == (2, 1.0)


def test_a_query_that_cannot_be_is_refused_when_it_is_made(lake: Lake, space: list[str]) -> None:
    refused = {
        "SELECT id FROM tt": "there is .*t",
        "SELECT idd FROM t": "near names: id",
        "SELECT id FROM": "query: ",
        'SELECT "id" FROM t': "back-quotes",
        "SELECT id + 1 FROM t": "column",
        "DELETE FROM t": "not a query",
        "SELECT id, id AS ID FROM t": "two columns called",
    }
    for query, message in refused.items():
        with pytest.raises(HttpError, match=message):
            lake.done(lake.database.create_view("v", query, namespace_path=space))
    assert lake.done(lake.database.list_views(namespace_path=space)) == []
    with pytest.raises(HttpError, match=r"table .*t already exists"):
        lake.done(lake.database.create_view("t", ONE, namespace_path=space))


def test_rows_of_a_view_are_not_written(lake: Lake, space: list[str]) -> None:
    view = open_view(lake, space)
    writes: tuple[Callable[[], Any], ...] = (
        lambda: view.add(some_rows(4).select(["id", "text", "vector"])),
        lambda: view.delete("true"),
        lambda: change_rows(lake, view),
        lambda: view.add_columns({"more": "id + 1"}),
        lambda: view.drop_columns(["text"]),
        lambda: (
            view.merge_insert("id")
            .when_not_matched_insert_all()
            .execute(some_rows(4).select(["id", "text", "vector"]))
        ),
        lambda: view.create_index("id"),
        lambda: lake.database.drop_table("v", namespace_path=space),
    )
    for write in writes:
        with pytest.raises(HttpError, match="is a view, not a table"):
            lake.done(write())
    with pytest.raises(HttpError, match=r"is read by .*v"):
        lake.done(lake.database.drop_table("t", namespace_path=space))
    assert lake.done(view.count_rows()) == 2


def change_rows(lake: Lake, view: Any) -> Any:
    return view.update(values={"text": "x"}) if lake.mode == SYNC else view.update({"text": "x"})


def test_made_by_lancedb_replaced_by_iceberg_and_read_by_the_sdk(
    lake: Lake, space: list[str], server: Server
) -> None:
    view, (name,) = open_view(lake, space), space
    with penstock.connect(server.url) as other:
        catalog: RestCatalog = other.iceberg_catalog()
        assert catalog.list_views(name) == [(name, "v")]
        loaded = catalog.load_view((name, "v"))
        assert [field.name for field in loaded.schema().fields] == ["id", "text", "vector"]
        # pyiceberg has no replace, so by the protocol itself.
        sql = f"SELECT id FROM {name}.t WHERE id < 3"
        iceberg.replace(name, "v", sql).send(server).raise_for_status()
        assert lake.done(lake.query(view).to_list()) == [{"id": 1}, {"id": 2}]
        assert lake.done(lake.database.describe_view("v", namespace_path=space)).query == sql
        shown = other.iceberg_view(f"{name}.v")
        assert [each.query for each in shown.history()] == [sql, ONE]
        # With another query by lancedb's door, its columns are found again.
        assert shown.alter(f"SELECT id AS one FROM {name}.t").version() == 3
        told = lake.done(lake.database.describe_view("v", namespace_path=space))
        assert told.schema.names == ["one"]
        assert [each.name for each in catalog.load_view((name, "v")).schema().fields] == ["one"]
        catalog.drop_view((name, "v"))
    assert lake.done(lake.database.list_views(namespace_path=space)) == []


def test_made_by_iceberg_in_another_dialect_and_read_by_lancedb(
    lake: Lake, space: list[str], server: Server
) -> None:
    (name,) = space
    version = {
        "schema-id": 0,
        "representations": [
            {"type": "sql", "dialect": "trino", "sql": 'SELECT "id" FROM t WHERE id > 2'}
        ],
        "default-namespace": [name],
    }
    with penstock.connect(server.url) as other:
        other.iceberg_catalog().create_view(
            (name, "v"),
            Schema(NestedField(1, "id", LongType(), required=False)),
            ViewVersion.model_validate(version),
        )
        assert lake.done(lake.database.list_views(namespace_path=space)) == ["v"]
        told = lake.done(lake.database.describe_view("v", namespace_path=space))
        assert told.schema == pa.schema([("id", pa.int64())])
        view = lake.done(lake.database.open_table("v", namespace_path=space))
        assert lake.done(lake.query(view).to_list()) == [{"id": 3}]
        # The one dialect that it has is kept.
        altered = other.iceberg_view(f"{name}.v").alter('SELECT "id" FROM t WHERE id < 2')
        assert altered.version() == 2
        assert lake.done(lake.query(view).to_list()) == [{"id": 1}]
        shown = other.iceberg_view(f"{name}.v").history()
        assert [each.dialect for each in shown] == ["trino", "trino"]
        with pytest.raises(penstock.errors.InvalidRequest, match="loss of view dialects"):
            other.iceberg_view(f"{name}.v").alter("SELECT id FROM t", dialect="spark")


def test_types_that_its_client_cannot_be_told_are_told_as_the_nearest(lake: Lake) -> None:
    name = new_name()
    times = pa.array([0], pa.timestamp("us", "UTC"))
    lake.done(lake.database.create_table(f"{name}t", pa.table({"at": times})))
    made = lake.done(lake.database.create_view(name, f"SELECT at FROM {name}t"))
    assert made.schema == pa.schema([("at", pa.timestamp("us"))])
    view = lake.done(lake.database.open_table(name))
    assert lake.done(lake.query(view).to_arrow()).schema.field("at").type == times.type


def test_a_view_is_a_source_of_materialized_views_in_sparks_sql(lake: Lake, server: Server) -> None:
    view, (kept, other) = new_name(), (new_name(), new_name())
    lake.done(lake.database.create_table(f"{view}t", some_rows(1, 2, 3)))
    lake.done(lake.database.create_view(view, f"SELECT id, text FROM {view}t WHERE id > 1"))
    # The client's own words for it are Lance's SQL, which knows tables.
    make = lake.database.create_materialized_view_async
    with pytest.raises(HttpError, match=r"is an Iceberg view, and Lance's SQL reads tables only"):
        lake.done(make(kept, view, select=["id"], with_no_data=True))
    with penstock.connect(server.url) as sdk:
        sdk.create_view(other, f"SELECT id FROM {view} WHERE id < 3")
    opened = lake.done(lake.database.open_materialized_view(other))
    assert lake.get(opened, "table").name == other
    with pytest.raises(HttpError, match=rf"is read by .*{other}"):
        lake.done(lake.database.drop_view(view))
    lake.done(lake.database.drop_materialized_view(other))
    lake.done(lake.database.drop_view(view))
