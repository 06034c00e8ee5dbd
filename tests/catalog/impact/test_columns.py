"""Columns that views and computed columns read, dropped, renamed and given other types."""

from typing import Any

import httpx
import pytest

from tests.harness.data.arrow import send
from tests.harness.data.tables import code, open_by_path
from tests.harness.jobs.fake_runner import TEXTS
from tests.harness.processes.servers import Server
from tests.harness.views.server_views import View, ask_create, head, make_iceberg_view, make_view

RENAME = {"alterations": [{"path": "text", "rename": "words"}]}
RETYPE = {"alterations": [{"path": "id", "data_type": {"type": "int32"}}]}
DROP = {"columns": ["text"]}


@pytest.fixture
def view(server: Server, cluster: str) -> View:
    """SELECT id, text FROM t WHERE id > 1."""
    return make_view(server, cluster)


@pytest.fixture
def space(server: Server, namespace: str) -> str:
    """A namespace with the table `t`, of the columns id and text."""
    send(server, f"/v1/table/{namespace}$t/create", TEXTS).raise_for_status()
    return namespace


def change(server: Server, table: str, operation: str, body: Any, **params: str) -> httpx.Response:
    return server.client.post(f"/v1/table/{table}/{operation}", json=body, params=params)


def drop(server: Server, table: str, *columns: str, **params: str) -> httpx.Response:
    return change(server, table, "drop_columns", {"columns": columns}, **params)


def add_computed(server: Server, table: str, **expressions: str) -> None:
    new = [{"name": name, "computed": sql} for name, sql in expressions.items()]
    change(server, table, "add_columns", {"new_columns": new}).raise_for_status()


@pytest.mark.parametrize(
    ("operation", "body"),
    [("alter_columns", RENAME), ("alter_columns", RETYPE), ("drop_columns", DROP)],
    ids=["rename", "retype", "drop"],
)
def test_a_column_that_a_view_reads_stays_as_it_is(view: View, operation: str, body: Any) -> None:
    answer = change(view.server, view.source, operation, body)
    assert code(answer) == (409, 19)
    assert view.id in answer.json()["error"]
    assert "?force=true" in answer.json()["detail"]
    assert head(view.server, view.source) == 1
    change(view.server, view.source, operation, body, force="true").raise_for_status()
    assert head(view.server, view.source) == 2


def test_a_column_that_no_view_reads_is_free(view: View) -> None:
    new = {"new_columns": [{"name": "more", "expression": "id + 1"}]}
    change(view.server, view.source, "add_columns", new).raise_for_status()
    body = {"alterations": [{"path": "more", "rename": "less"}]}
    change(view.server, view.source, "alter_columns", body).raise_for_status()
    nullable = {"alterations": [{"path": "text", "nullable": True}]}
    change(view.server, view.source, "alter_columns", nullable).raise_for_status()
    drop(view.server, view.source, "less").raise_for_status()


def test_a_column_of_a_star_counts_as_it_was_when_the_view_was_made(view: View) -> None:
    server, ns = view.server, view.namespace
    ask_create(server, f"{ns}$all", source_query="SELECT * FROM t").raise_for_status()
    new = {"new_columns": [{"name": "more", "expression": "id + 1"}]}
    change(server, view.source, "add_columns", new).raise_for_status()
    assert f"{ns}$all" in drop(server, view.source, "id").json()["error"]
    drop(server, view.source, "more").raise_for_status()


def test_branches_are_nobodys_source(view: View) -> None:
    branch = {"name": "dev"}
    view.server.post(f"/v1/table/{view.source}/branches/create", branch).raise_for_status()
    body = {"columns": ["text"], "branch": "dev"}
    change(view.server, view.source, "drop_columns", body).raise_for_status()


READING = {
    "by its name": "SELECT text FROM t",
    "by a star": "SELECT * FROM t",
    "to filter": "SELECT id FROM t WHERE text = 'a'",
    "in a CTE, for nothing": "WITH a AS (SELECT id, text FROM t) SELECT id FROM a",
    "in a CTE that nothing reads": "WITH a AS (SELECT text FROM t) SELECT id FROM t",
    "in a subquery's unused output": "SELECT id FROM (SELECT id, text FROM t) AS s",
    "to join": "SELECT a.id FROM t AS a JOIN t AS b ON a.text = b.text",
    "to order": "SELECT id FROM t ORDER BY text",
    "by another of its dialects": "SELECT id FROM t",
    "in a query that cannot be resolved": "SELECT id, text FROM t, absent.table",
}


@pytest.mark.parametrize("sql", READING.values(), ids=READING.keys())
def test_a_column_that_an_iceberg_view_reads_stays(server: Server, space: str, sql: str) -> None:
    others = {"trino": "SELECT text FROM t"} if sql == "SELECT id FROM t" else {}
    make_iceberg_view(server, space, "i", sql, **others)
    make_iceberg_view(server, space, "above", "SELECT 1 AS one FROM i")
    answer = drop(server, f"{space}$t", "text")
    assert code(answer) == (409, 19)
    assert f"{space}$above, {space}$i" in answer.json()["error"]
    drop(server, f"{space}$t", "text", force="true").raise_for_status()


@pytest.mark.parametrize("sql", ["SELECT id FROM t", "SELECT id AS text FROM t", "SELECT 'text' x"])
def test_a_column_that_an_iceberg_view_does_not_read_goes(
    server: Server, space: str, sql: str
) -> None:
    make_iceberg_view(server, space, "i", sql)
    drop(server, f"{space}$t", "text").raise_for_status()


def test_a_view_reads_by_way_of_an_iceberg_view(server: Server, space: str) -> None:
    make_iceberg_view(server, space, "i", "SELECT text FROM t")
    ask_create(server, f"{space}$m", source_query="SELECT text FROM i").raise_for_status()
    answer = drop(server, f"{space}$t", "text")
    assert f"{space}$i, {space}$m" in answer.json()["error"]
    drop(server, f"{space}$t", "text", cascade="true").raise_for_status()
    assert server.get(f"/v1/namespace/{space}/table/list").json()["tables"] == ["t"]
    assert server.get(f"/iceberg/v1/namespaces/{space}/views").json()["identifiers"] == []


def test_a_cascading_drop_takes_computed_columns_along(server: Server, space: str) -> None:
    table = f"{space}$t"
    add_computed(server, table, size="length(text)", key="id + 1")
    add_computed(server, table, twice="size * 2")
    assert code(drop(server, table, "text")) == (400, 13)
    drop(server, table, "text", cascade="true").raise_for_status()
    assert open_by_path(server, table).schema.names == ["id", "key"]


def test_a_computed_column_that_a_view_reads_is_kept_by_it(server: Server, space: str) -> None:
    table = f"{space}$t"
    add_computed(server, table, size="length(text)")
    ask_create(server, f"{space}$m", source_query="SELECT size FROM t").raise_for_status()
    assert code(drop(server, table, "size")) == (409, 19)
    # With its input it would go, and the view with it.
    assert code(drop(server, table, "text")) == (400, 13)
    drop(server, table, "text", cascade="true").raise_for_status()
    assert server.get(f"/v1/namespace/{space}/table/list").json()["tables"] == ["t"]


def test_a_computed_column_that_lost_its_input_says_so(server: Server, space: str) -> None:
    table = f"{space}$t"
    add_computed(server, table, size="length(text)")
    retype = {"alterations": [{"path": "text", "data_type": {"type": "large_utf8"}}]}
    assert code(change(server, table, "alter_columns", retype)) == (400, 13)
    change(server, table, "alter_columns", RENAME, force="true").raise_for_status()
    answer = change(server, table, "backfill_column", {"column": "size"})
    assert code(answer) == (400, 13)
    assert "reads text" in answer.json()["error"]
    drop(server, table, "size").raise_for_status()


def test_a_missing_column_is_told_before_what_would_break(view: View) -> None:
    assert code(drop(view.server, view.source, "text", "absent")) == (404, 12)
    assert code(drop(view.server, view.source, "absent", cascade="true")) == (404, 12)
    view.ask("describe").raise_for_status()
