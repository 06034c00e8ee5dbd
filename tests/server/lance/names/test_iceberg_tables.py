"""Iceberg tables as the Lance protocol sees them: their names are taken, their rows are not."""

from typing import Any

import pytest

from tests.harness.clients import iceberg_requests as views
from tests.harness.clients import iceberg_tables as tables
from tests.harness.data.arrow import people, send
from tests.harness.processes.servers import Server


@pytest.fixture
def table(server: Server, namespace: str) -> str:
    tables.make(server, namespace, "i", properties={"a": "b"})
    return f"{namespace}$i"


def test_lance_tables_alone_are_listed(server: Server, namespace: str, table: str) -> None:
    send(server, f"/v1/table/{namespace}$l/create", people(1)).raise_for_status()
    for declared in ("true", "false"):
        path = f"/v1/namespace/{namespace}/table/list"
        assert server.get(path, include_declared=declared).json()["tables"] == ["l"]
        listed = server.get("/v1/table", include_declared=declared).json()["tables"]
        assert f"{namespace}$l" in listed
        assert table not in listed


@pytest.mark.parametrize("operation", ["describe", "exists"])
def test_it_is_no_table_of_lance(server: Server, table: str, operation: str) -> None:
    answer = server.post(f"/v1/table/{table}/{operation}")
    assert (answer.status_code, answer.json()["code"]) == (404, 4)
    assert "is an Iceberg table, not a Lance table" in answer.text
    headers = {"x-lancedb-client-version": "0.40"}
    answer = server.client.post(f"/v1/table/{table}/{operation}", headers=headers)
    assert answer.status_code == 404


@pytest.mark.parametrize(
    ("operation", "body"),
    [
        ("count_rows", {}),
        ("query", {"k": 1, "vector": {}}),
        ("drop", {}),
        ("deregister", {}),
        ("rename", {"new_table_name": "x"}),
        ("delete", {"predicate": "a = 1"}),
        ("drop_columns", {"columns": ["a"]}),
        ("version/list", {}),
        ("stats", {}),
    ],
)
def test_operations_on_rows_say_what_it_is(
    server: Server, namespace: str, table: str, operation: str, body: Any
) -> None:
    answer = server.post(f"/v1/table/{table}/{operation}", body)
    assert (answer.status_code, answer.json()["code"]) == (400, 19), answer.text
    assert "is an Iceberg table, not a Lance table" in answer.text
    tables.load(server, namespace, "i")


def test_rows_cannot_be_put_in_its_place(server: Server, table: str) -> None:
    for mode in ("create", "overwrite", "exist_ok"):
        answer = server.client.post(f"/v1/table/{table}/create", params={"mode": mode})
        assert answer.status_code in (400, 409), answer.text
    assert send(server, f"/v1/table/{table}/insert", people(1)).status_code == 400
    where = {"location": "nowhere.lance", "mode": "overwrite"}
    assert server.post(f"/v1/table/{table}/register", where).status_code == 400


def test_queries_say_that_only_materialized_views_read_it(
    server: Server, namespace: str, table: str
) -> None:
    answer = server.post("/v1/sql", {"sql": f"SELECT * FROM {namespace}.i"})
    assert (answer.status_code, answer.json()["code"]) == (400, 13), answer.text
    assert "is an Iceberg table, which only materialized views read here" in answer.text


def test_it_is_listed_and_described_as_what_it_is(
    server: Server, namespace: str, table: str
) -> None:
    listed = server.get(f"/v1/namespace/{namespace}/iceberg_table/list").json()
    assert listed == {"tables": ["i"]}
    loaded = tables.load(server, namespace, "i")
    told = server.post(f"/v1/iceberg_table/{table}/describe").raise_for_status().json()
    assert [each["name"] for each in told["schema"]["fields"]] == ["a", "b"]
    wanted = {
        "name": "i",
        "namespace": [namespace],
        "uuid": loaded["metadata"]["table-uuid"],
        "format_version": 2,
        "location": loaded["metadata"]["location"],
        "metadata_location": loaded["metadata-location"],
        "snapshots": 0,
        "partitioning": [],
        "properties": {"a": "b"},
    }
    assert told.items() >= wanted.items()
    request = tables.append_to(namespace, "i", loaded["metadata"])
    snapshot = request.body["updates"][0]["snapshot"]
    snapshot["summary"]["total-records"] = "7"
    request.send(server).raise_for_status()
    told = server.post(f"/v1/iceberg_table/{table}/describe").json()
    assert (told["snapshot"], told["rows"]) == (str(snapshot["snapshot-id"]), 7)
    assert (told["branches"], told["snapshots"]) == (["main"], 1)
    missing = server.post(f"/v1/iceberg_table/{namespace}$x/describe")
    assert (missing.status_code, missing.json()["code"]) == (404, 4)


def test_what_reads_it_is_told(server: Server, namespace: str, table: str) -> None:
    view = views.create(namespace, "v", f"SELECT a FROM {namespace}.i")
    view.send(server).raise_for_status()
    told = server.post(f"/v1/table/{table}/dependents").raise_for_status().json()
    assert [(each["kind"], each["id"]) for each in told["dependents"]] == [
        ("iceberg_view", [namespace, "v"])
    ]
    lineage = server.get(f"{views.path(namespace)}/lineage").raise_for_status().json()
    assert lineage["columns"][0]["sources"] == [{"table": [namespace, "i"], "column": "a"}]
    # As with views, the protocol's own drop breaks what reads it by name.
    assert tables.drop(namespace, "i").send(server).status_code == 204
