"""Expressions that would make large values are refused at every door, before anything is made."""

import json
from typing import Any

import pytest

from tests.harness.data.arrow import people, send
from tests.harness.data.tables import code, new_name
from tests.harness.processes.servers import Server

pytestmark = pytest.mark.parametrize("server", ["sqlite"], indirect=True)

LARGE = "array_length(array_repeat(1, 1000000000000)) > 0"
# What Lance passes over: it must not reach Lance at all.
HIDDEN = f"id = 1 GROUP BY {LARGE}"


@pytest.fixture(scope="module")
def table(server: Server) -> str:
    namespace = new_name()
    server.post(f"/v1/namespace/{namespace}/create").raise_for_status()
    send(server, f"/v1/table/{namespace}$t/create", people(1, 2, 3)).raise_for_status()
    return f"{namespace}$t"


@pytest.mark.parametrize("predicate", [LARGE, HIDDEN])
@pytest.mark.parametrize(
    ("operation", "make"),
    [
        ("query", lambda sql: {"filter": sql}),
        ("query", lambda sql: {"columns": {"a": sql}}),
        ("query", lambda sql: {"columns": {"column_aliases": {"a": sql}}, "k": 1}),
        ("count_rows", lambda sql: {"predicate": sql}),
        ("explain_plan", lambda sql: {"query": {"filter": sql, "k": 1}}),
        ("analyze_plan", lambda sql: {"filter": sql, "k": 1}),
        ("update", lambda sql: {"updates": [["name", "'x'"]], "predicate": sql}),
        ("update", lambda sql: {"updates": [["id", sql]]}),
        ("delete", lambda sql: {"predicate": sql}),
        ("add_columns", lambda sql: {"new_columns": [{"name": "n", "expression": sql}]}),
        ("add_columns", lambda sql: {"new_columns": [{"name": "n", "computed": sql}]}),
    ],
)
def test_a_large_value_is_refused_at_every_door(
    server: Server, table: str, operation: str, make: Any, predicate: str
) -> None:
    answer = server.post(f"/v1/table/{table}/{operation}", make(predicate))
    assert code(answer) == (400, 13), answer.text
    assert "array_repeat" in answer.text or "is not expected" in answer.text
    assert server.post(f"/v1/table/{table}/count_rows", {}).json() == 3


@pytest.mark.parametrize(
    "name", ["when_matched_update_all_filt", "when_not_matched_by_source_delete_filt"]
)
def test_a_large_value_is_refused_in_a_merge(server: Server, table: str, name: str) -> None:
    flags = {"when_matched_update_all": "true", "when_not_matched_by_source_delete": "true"}
    path = f"/v1/table/{table}/merge_insert"
    answer = send(server, path, people(1, 9), on="id", **flags, **{name: LARGE})
    assert code(answer) == (400, 13)
    assert name in answer.text


def test_a_large_value_is_refused_in_a_backfill_and_in_a_view(server: Server, table: str) -> None:
    new = {"name": "half", "computed": "id / 2"}
    server.post(f"/v1/table/{table}/add_columns", {"new_columns": [new]}).raise_for_status()
    backfill = server.post(f"/v1/table/{table}/backfill_column", {"column": "half", "where": LARGE})
    sql = f"SELECT id FROM {table.replace('$', '.')} WHERE {LARGE}"
    view = server.post(
        f"/v1/materialized_view/{table}_v/create",
        {"kind": "query", "source_query": json.dumps({"sql": sql, "dialect": "lance"})},
    )
    assert [code(backfill), code(view)] == [(400, 13), (400, 13)]
    assert "array_repeat" in backfill.text
    assert "array_repeat" in view.text
