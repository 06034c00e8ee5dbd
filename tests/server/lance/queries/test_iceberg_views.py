"""Queries of Iceberg views, compared with the same queries of a table that holds their rows."""

from dataclasses import replace
from typing import Any

import lance
import pytest

from tests.harness.data.rows import documents, put, query
from tests.harness.data.tables import Table, code
from tests.harness.processes.servers import Server

# What the view selects, as Lance itself would.
COLUMNS = {"number": "id", "pie": "body", "vector": "vector", "info": "info", "next": "id"}
SQL = "SELECT id AS number, body AS pie, vector, info, id AS next FROM t WHERE id >= 50"


@pytest.fixture(scope="module")
def pair(server: Server) -> tuple[Table, Table]:
    """A view, and a table with the same rows."""
    rows = documents()
    table, dataset = put(server, rows)
    for column in ("body", "title"):
        dataset.create_scalar_index(column, "INVERTED")
    namespace = table.parts[0]
    make(server, f"{namespace}$v", SQL)
    held, copy = put(server, lance.dataset(dataset.uri).to_table(COLUMNS, filter="id >= 50"))
    copy.create_scalar_index("pie", "INVERTED")
    return replace(table, id=f"{namespace}$v"), held


def make(server: Server, id: str, sql: str, **more: Any) -> None:
    answer = server.post(f"/v1/view/{id}/create", {"query": sql, **more})
    assert answer.status_code == 200, answer.text


NEAR = {"vector": {"single_vector": [0.5] * 8}, "k": 7}
WORDS = {"string_query": {"query": "banana"}}
QUERIES: dict[str, dict[str, Any]] = {
    "everything": {},
    "columns": {"columns": ["pie", "number"], "k": 9, "offset": 3},
    "a field": {"columns": {"x": "info.x"}, "filter": "info.y < -190"},
    "expressions": {"columns": {"big": "number * 2 + next", "loud": "upper(pie)"}, "k": 5},
    "a filter": {"filter": "number % 10 = 7 AND pie LIKE '%cherry%' OR `next` IN (51, 60)"},
    "quotes": {"filter": "`number` < 53 AND pie <> 'it''s \"so\" -- no comment'"},
    "no rows": {"k": 0},
    "sorted": {"order_by": [{"column_name": "number", "ascending": False}], "k": 4},
    "sorted by a field": {"order_by": [{"column_name": "info.y"}], "k": 4},
    "a sample of all": {"sample": {"rows": 10_000, "seed": 7}, "filter": "number = 60"},
    "the nearest": {**NEAR, "columns": ["number"]},
    "the nearest of some": {**NEAR, "filter": "number > 100", "prefilter": True},
    "words": {"full_text_query": WORDS, "k": 200, "columns": ["number"]},
    "words of a column": {
        "full_text_query": {"string_query": {"query": "banana", "columns": ["pie"]}},
        "filter": "number < 90",
        "prefilter": True,
        "k": 200,
        "columns": ["number"],
    },
}


@pytest.mark.parametrize("name", QUERIES)
def test_a_view_gives_what_a_table_of_its_rows_would(pair: tuple[Table, Table], name: str) -> None:
    view, table = pair
    found, wanted = query(view, **QUERIES[name]), query(table, **QUERIES[name])
    if "full_text_query" in QUERIES[name]:
        # Words weigh as in the table below it, and equal ones come in any order.
        found, wanted = (each.select(["number"]).sort_by("number") for each in (found, wanted))
    assert found.to_pylist() == wanted.to_pylist()
    assert found.schema.types == wanted.schema.types
    assert found.num_rows or name == "no rows"


def test_rows_are_counted(pair: tuple[Table, Table]) -> None:
    view, table = pair
    for predicate in (None, "number < 60", "pie LIKE '%apple%'"):
        assert view.ask("count_rows", {"predicate": predicate}).json() == (
            table.ask("count_rows", {"predicate": predicate}).json()
        )


def test_plans_are_those_of_the_table_below(pair: tuple[Table, Table]) -> None:
    view, _ = pair
    plan = view.ask("explain_plan", {"query": {"filter": "number = 60"}}).json()
    assert "id >= Int64(50) AND id = Int64(60)" in plan
    assert "output_rows=1" in view.ask("analyze_plan", {"filter": "number = 60"}).json()


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"filter": "nosuch = 1"}, "column nosuch does not exist"),
        ({"columns": ["id"]}, "column id does not exist"),
        ({"filter": "number = 1) OR (id = 3"}, "is not an expression"),
        ({"filter": "1 = 1 UNION SELECT 1"}, "is not an expression"),
        ({"columns": {"a`b": "number"}}, "can't name the column a`b"),
        ({"version": 1}, "its rows have no version 1"),
        ({"branch": "dev"}, "its rows have no branch dev"),
        ({**NEAR, "vector_column": "pie"}, "not a vector"),
        ({**NEAR, "filter": "number = 1"}, "prefilter is false"),
        ({"filter": '"number" < 53'}, "a name or a text"),
        ({"columns": {"x": '"number"'}}, "a name or a text"),
    ],
)  # fmt: skip
def test_what_a_view_cannot_be_asked(
    pair: tuple[Table, Table], body: dict[str, Any], message: str
) -> None:
    view, _ = pair
    answer = view.ask("query", body)
    assert answer.status_code == 400, answer.text
    assert message in answer.text


def test_a_limit_of_the_view_comes_before_the_query(server: Server) -> None:
    table, _ = put(server, documents(20))
    make(server, f"{table.parts[0]}$v", "SELECT id FROM t WHERE id > 3 LIMIT 5")
    view = replace(table, id=f"{table.parts[0]}$v")
    assert query(view)["id"].to_pylist() == [4, 5, 6, 7, 8]
    assert query(view, k=3, offset=4)["id"].to_pylist() == [8]
    assert query(view, k=3, offset=6).num_rows == 0
    assert view.ask("count_rows").json() == 5
    refused = view.ask("query", {"with_row_id": True, "filter": "id = 1"})
    assert code(refused) == (406, 0)
    assert "materialized view" in refused.text
    words = view.ask("query", {"full_text_query": WORDS, "k": 1})
    assert code(words) == (406, 0)


def test_words_are_searched_in_columns_that_the_view_has(server: Server) -> None:
    table, dataset = put(server, documents(20))
    dataset.create_scalar_index("body", "INVERTED")
    make(server, f"{table.parts[0]}$v", "SELECT id, title FROM t")
    view = replace(table, id=f"{table.parts[0]}$v")
    refused = view.ask("query", {"full_text_query": WORDS, "k": 1})
    assert code(refused) == (400, 13)
    assert "full-text index" in refused.text


def test_a_view_follows_its_table_and_says_what_broke_it(server: Server) -> None:
    table, dataset = put(server, documents(5))
    make(server, f"{table.parts[0]}$v", "SELECT id, title FROM t")
    view = replace(table, id=f"{table.parts[0]}$v")
    dataset.delete("id = 0")
    assert query(view).num_rows == view.ask("count_rows").json() == 4
    table.ask("drop_columns", {"columns": ["title"]}, force="true").raise_for_status()
    broken = view.ask("query", {})
    assert code(broken) == (400, 13)
    assert "title" in broken.text


def test_who_does_not_ask_as_lancedb_is_told_that_it_is_no_table(server: Server) -> None:
    table, _ = put(server, documents(5))
    make(server, f"{table.parts[0]}$v", "SELECT id FROM t")
    view = replace(table, id=f"{table.parts[0]}$v")
    for operation in ("describe", "exists"):
        assert code(view.ask(operation)) == (404, 4)
    for operation in ("version/list", "tags/list", "index/list", "stats", "deregister"):
        refused = view.ask(operation)
        assert code(refused) == (400, 19), operation
        assert "is a view, not a table" in refused.text
    header = {"x-lancedb-database": "x"}
    told = server.client.post(f"/v1/table/{view.id}/describe", headers=header).json()
    assert (told["table"], told["version"]) == ("v", 1)
    assert [field["name"] for field in told["schema"]["fields"]] == ["id"]
