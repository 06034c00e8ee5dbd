"""Materialized views of Iceberg tables, as far as the server knows them: no rows are read here."""

import json
from typing import Any

import pytest

from tests.harness.clients import iceberg_tables
from tests.harness.data.tables import new_name
from tests.harness.processes.servers import Server
from tests.harness.views.server_views import View, ask_create, make_iceberg_view

ON_SQLITE = pytest.mark.parametrize("server", ["sqlite"], indirect=True)


@pytest.fixture
def view(server: Server, cluster: str) -> View:
    """A view of an Iceberg table without rows."""
    namespace = new_name()
    server.post(f"/v1/namespace/{namespace}/create").raise_for_status()
    iceberg_tables.make(server, namespace, "ice")
    made = View(server, f"{namespace}$ice", f"{namespace}$v", cluster)
    create(made, source_query="SELECT a + b AS c, a FROM ice", cluster=cluster)
    return made


def create(view: View, name: str = "v", **body: Any) -> None:
    answer = ask_create(view.server, f"{view.namespace}${name}", **body)
    assert answer.status_code == 201, answer.text


def refuse(view: View, **body: Any) -> str:
    answer = ask_create(view.server, f"{view.namespace}$other", **body)
    assert answer.status_code == 400, answer.text
    return str(answer.json()["error"]) + str(answer.json().get("detail", ""))


def load(view: View) -> Any:
    return iceberg_tables.load(view.server, view.namespace, "ice")["metadata"]


def append(view: View, **summary: str) -> int:
    """Commit a snapshot; returns its id."""
    requires, updates = iceberg_tables.append(load(view))
    updates[0]["snapshot"]["summary"] |= summary
    asked = iceberg_tables.commit(view.namespace, "ice", *updates, requires=requires)
    asked.send(view.server).raise_for_status()
    return int(updates[0]["snapshot"]["snapshot-id"])


def refresh(view: View) -> dict[str, Any]:
    """A refresh that made the view what the table was when it was leased; returns its spec."""
    view.request()
    job = view.lease()
    spec: dict[str, Any] = job["spec"]
    ((id, state),) = spec["iceberg"].items()
    mark = {
        "versions": {id: state["snapshot"]},
        "transactions": {id: state["uuid"]},
        "digest": spec["definition"]["digest"],
        "view_version": 1,
    }
    view.runner.finish(job, result={"version": 1, "watermark": mark}).raise_for_status()
    return spec


def is_stale(view: View) -> bool:
    return view.tell()["stale"] == "true"


def test_a_view_has_the_columns_that_the_schema_gives_and_no_row_ids(view: View) -> None:
    told = view.ask_table("describe", {"load_detailed_metadata": True}).json()
    fields = told["schema"]["fields"]
    assert [(each["name"], each["type"]["type"]) for each in fields] == [
        ("c", "int64"),
        ("a", "int64"),
    ]


def test_a_refresh_is_given_one_metadata_file_and_its_snapshot(view: View) -> None:
    spec = refresh(view)
    ((id, state),) = spec["iceberg"].items()
    assert spec["definition"]["sources"][0]["id"] == id
    assert (state["uuid"], state["snapshot"]) == (load(view)["table-uuid"], 0)
    snapshot = append(view)
    state = refresh(view)["iceberg"][id]
    assert state["snapshot"] == snapshot
    told = iceberg_tables.load(view.server, view.namespace, "ice")
    assert state["file"] == told["metadata-location"]
    assert json.loads(view.tell()["watermark"]) == {view.source: snapshot}


def test_a_view_is_stale_when_rows_changed_and_not_when_files_or_properties_did(
    view: View,
) -> None:
    assert is_stale(view)
    refresh(view)
    assert not is_stale(view)
    iceberg_tables.set_property(view.namespace, "ice", a="b").send(view.server).raise_for_status()
    assert not is_stale(view)
    append(view)
    assert is_stale(view)
    refresh(view)
    append(view, operation="replace")
    assert not is_stale(view)
    append(view, operation="delete")
    assert is_stale(view)


def test_explain_tells_what_the_snapshots_tell(view: View) -> None:
    def explain(**body: Any) -> dict[str, Any]:
        told: dict[str, Any] = view.ask("explain", body).raise_for_status().json()
        return told

    append(view)
    first = explain()
    assert (first["mode"], first["shape"], first["obstacle"]) == ("full", "whole", "")
    assert (first["reason"], first["rows_to_insert"]) == ("the view was never filled", None)
    refresh(view)
    assert explain()["mode"] == "none"
    then = append(view, **{"added-records": "3"})
    now = append(view, **{"added-records": "4"})
    told = explain(mode="incremental")
    assert (told["mode"], told["rows_to_insert"]) == ("incremental", 7)
    assert told["source_versions"][view.source]["to"] == now != then
    append(view)
    told = explain()
    assert (told["mode"], told["rows_to_insert"]) == ("incremental", None)
    assert "snapshots" in told["unknown"]["rows_to_insert"]
    deleted = append(view, operation="delete", **{"total-records": "5", "total-delete-files": "0"})
    told = explain()
    assert (told["mode"], told["rows_to_insert"]) == ("full", 5)
    assert f"snapshot {deleted} did more than append rows" in told["reason"]


@ON_SQLITE
def test_what_needs_rows_with_ids_is_refused_with_what_to_do(view: View) -> None:
    dump = {"query": "SELECT a FROM ice"}
    assert "dialect" in refuse(view, source_query=json.dumps(dump))
    answer = view.ask("refresh", {"src_version": 1, "cluster": view.cluster})
    assert answer.status_code == 400
    assert "Iceberg table" in answer.text
    sql = view.server.post("/v1/sql", {"sql": f"SELECT a FROM {view.namespace}.ice"})
    assert "only materialized views read" in sql.text


@ON_SQLITE
def test_a_query_that_is_no_selection_is_followed_as_a_whole(view: View) -> None:
    for number, (query, why) in enumerate(
        (
            ("SELECT sum(a) AS n FROM ice", "is an Iceberg table, and"),
            ("SELECT a FROM ice LIMIT 3", "LIMIT"),
            ("SELECT a FROM ice WHERE a < unix_micros(now())", "clock"),
        )
    ):
        create(view, f"w{number}", source_query=query)
        other = View(view.server, view.source, f"{view.namespace}$w{number}", view.cluster)
        told = other.ask("explain", {}).json()
        assert (told["mode"], why in told["obstacle"]) == ("full", True), told
        refused = other.ask("refresh", {"mode": "incremental"})
        assert refused.status_code == 400
        assert why in refused.text


@ON_SQLITE
def test_columns_that_views_cannot_have_are_refused_by_name(view: View) -> None:
    schema = iceberg_tables.schema("a", "g")
    schema["fields"][1]["type"] = "geometry"
    asked = iceberg_tables.create(
        view.namespace, "geo", schema=schema, properties={"format-version": "3"}
    )
    asked.send(view.server).raise_for_status()
    assert "column g" in refuse(view, source_query="SELECT a FROM geo")


@ON_SQLITE
def test_a_table_that_a_view_reads_is_not_dropped_and_lineage_shows_it(view: View) -> None:
    refused = iceberg_tables.drop(view.namespace, "ice").send(view.server)
    assert refused.status_code == 409
    assert view.id.split("$")[1] in refused.text
    found = view.server.post(f"/v1/table/{view.source}/dependents", {}).json()["dependents"]
    assert [(each["kind"], each["id"]) for each in found] == [
        ("materialized_view", view.id.split("$"))
    ]
    iceberg_tables.rename(view.namespace, "ice", "cold").send(view.server).raise_for_status()
    assert refresh(view)["definition"]["sources"][0]["table"] == [view.namespace, "cold"]


def test_its_lineage_has_the_table_and_tells_when_it_is_behind(view: View) -> None:
    def draw(name: str) -> tuple[list[tuple[str, str, str]], list[list[str]]]:
        path = f"/v1/table/{view.namespace}${name}/lineage"
        found = view.server.post(path).json()
        keys = {node["key"]: node["id"][-1] for node in found["nodes"]}
        nodes = [(node["kind"], node["id"][-1], node.get("state", "")) for node in found["nodes"]]
        return sorted(nodes), [[keys[each["from"]], keys[each["to"]]] for each in found["edges"]]

    make_iceberg_view(view.server, view.namespace, "eye", "SELECT a FROM ice")
    append(view)
    refresh(view)
    assert draw("v") == (
        [("iceberg_table", "ice", ""), ("materialized_view", "v", "fresh")],
        [["ice", "v"]],
    )
    append(view)
    nodes, edges = draw("ice")
    assert nodes == [
        ("iceberg_table", "ice", ""),
        ("materialized_view", "v", "stale"),
        ("view", "eye", ""),
    ]
    assert sorted(edges) == [["ice", "eye"], ["ice", "v"]]
    path = f"/v1/table/{view.namespace}$ice/lineage"
    refused = view.server.post(path, {"column": "a"})
    assert (refused.status_code, refused.json()["code"]) == (400, 13)
    assert "leave column out" in refused.text
