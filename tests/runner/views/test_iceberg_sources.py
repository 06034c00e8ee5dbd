"""Materialized views of Iceberg tables, which pyiceberg writes and a runner reads."""

import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.table import Table
from pyiceberg.types import StringType

from tests.harness.clients import iceberg_tables
from tests.harness.data.tables import new_name
from tests.harness.processes.runners import RunnerProcess
from tests.harness.processes.servers import Server
from tests.harness.views.runner_views import (
    RunnerView,
    documents,
    make_source,
    make_view,
    recording,
    udtf_spec,
)

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]


@pytest.fixture
def rest(server: Server, runner: RunnerProcess) -> Iterator[RestCatalog]:
    opened = RestCatalog("penstock", uri=f"{server.url}/iceberg")
    yield opened
    opened.close()


def make_table(rest: RestCatalog, *ids: int, namespace: str = "") -> Table:
    """An Iceberg table of documents."""
    namespace = namespace or new_name()
    rest.create_namespace_if_not_exists(namespace)
    table: Table = rest.create_table(f"{namespace}.ice", documents([1]).schema)
    if ids:
        table.append(documents(ids))
    return table


def send(server: Server, table: Table, requires: Any, updates: Any) -> None:
    namespace, name = table.name()
    asked = iceberg_tables.commit(namespace, name, *updates, requires=requires)
    server.client.request(asked.method, asked.path, json=asked.body).raise_for_status()


def load(server: Server, table: Table) -> Any:
    """The table's metadata."""
    namespace, name = table.name()
    answer = server.client.get(iceberg_tables.path(namespace, name))
    return answer.raise_for_status().json()["metadata"]


def view_of(server: Server, table: Table, query: Any, name: str = "v", **body: Any) -> RunnerView:
    view = RunnerView(server, table.name()[0])
    return make_view(view, query, name, **body)


def is_stale(view: RunnerView) -> bool:
    return bool(view.ask("describe").json()["properties"]["penstock.stale"] == "true")


def replace_snapshot(server: Server, table: Table) -> None:
    """Commit what a compaction commits: another snapshot with the same rows."""
    document = load(server, table)
    current = next(
        each
        for each in document["snapshots"]
        if each["snapshot-id"] == document["current-snapshot-id"]
    )
    requires, updates = iceberg_tables.append(document)
    added = updates[0]["snapshot"]
    added["manifest-list"] = current["manifest-list"]
    added["summary"] = current["summary"] | {"operation": "replace"}
    send(server, table, requires, updates)


def test_appended_rows_are_appended_to_a_view_and_a_compaction_changes_nothing(
    server: Server, rest: RestCatalog
) -> None:
    table = make_table(rest, 1, 2, 3)
    view = view_of(server, table, "SELECT id, upper(text) AS text FROM ice")
    assert is_stale(view)
    plan = view.explain()
    assert (plan["mode"], plan["rows_to_insert"]) == ("full", 3)
    assert view.refresh(verify=True)["mode"] == "full"
    assert not is_stale(view)
    first = view.open().version

    table.append(documents([4]))
    table.append(documents([5, 6]))
    assert is_stale(view)
    found = view.refresh(verify=True, mode="incremental")
    assert (found["mode"], found["rows_inserted"]) == ("incremental", "3")
    assert '"is_equal":true' in found["certificate"]
    assert [id for id, _ in view.show("id", "text")] == [1, 2, 3, 4, 5, 6]
    assert view.open().version == first + 1

    table.transaction().set_properties(a="1").commit_transaction()
    replace_snapshot(server, table)
    assert not is_stale(view)
    assert view.refresh()["mode"] == "none"

    table.refresh().append(documents([7]))
    replace_snapshot(server, table)
    assert is_stale(view)
    assert view.refresh(verify=True)["mode"] == "incremental"
    assert [id for id, _ in view.show("id", "text")] == [1, 2, 3, 4, 5, 6, 7]


def test_anything_but_an_append_makes_a_view_anew(server: Server, rest: RestCatalog) -> None:
    table = make_table(rest, 1, 2, 3)
    view = view_of(server, table, "SELECT id, kind FROM ice WHERE id <> 2")
    plan = view.explain()
    assert plan["rows_to_insert"] is None
    assert "filter" in plan["unknown"]["rows_to_insert"]
    view.refresh(verify=True)
    table.delete("id = 3")
    answer = server.post(f"/v1/materialized_view/{view.id}/explain", {"mode": "incremental"})
    assert answer.status_code == 400
    assert "did more than append rows" in answer.text
    assert view.refresh(verify=True)["mode"] == "full"
    assert view.show("id") == [(1,)]


def test_a_table_without_rows_is_followed_from_its_first_ones(
    server: Server, rest: RestCatalog
) -> None:
    table = make_table(rest)
    with table.update_spec() as update:
        update.add_identity("kind")
    view = view_of(server, table, "SELECT id, kind FROM ice")
    view.refresh(verify=True)
    assert view.show("id") == []
    table.append(documents([1, 2, 3]))
    assert view.refresh(verify=True)["mode"] == "incremental"
    assert view.show("id", "kind") == [(1, "k1"), (2, "k2"), (3, "k0")]


def test_a_changed_schema_is_read_with_the_names_that_it_has_now(
    server: Server, rest: RestCatalog
) -> None:
    table = make_table(rest, 1, 2)
    view = view_of(server, table, "SELECT id, title FROM ice")
    view.refresh()
    with table.update_schema() as update:
        update.add_column("more", StringType())
    table.append(documents([3]).append_column("more", pa.array(["m"])))
    assert view.refresh(verify=True)["mode"] == "incremental"
    later = view_of(server, table, "SELECT id, more FROM ice", "later")
    later.refresh(verify=True)
    assert later.show("id", "more") == [(1, None), (2, None), (3, "m")]
    with table.update_schema() as update:
        update.delete_column("more")
    with table.update_schema() as update:
        update.add_column("more", StringType())
    assert "means something else" in later.refresh(verify=True)["reason"]
    assert later.show("id", "more") == [(1, None), (2, None), (3, None)]
    with table.update_schema() as update:
        update.rename_column("more", "most")
    refused = server.post(f"/v1/materialized_view/{later.id}/refresh", {})
    assert refused.status_code == 400
    assert "more" in refused.text


def test_iceberg_and_lance_tables_are_joined_as_a_whole(server: Server, rest: RestCatalog) -> None:
    source = make_source(server, [1, 2, 3])
    table = make_table(rest, 2, 3, 4, namespace=source.namespace)
    query = "SELECT count(*) AS n, max(t.title) AS last FROM t JOIN ice i ON t.id = i.id"
    view = make_view(source, query)
    view.refresh(verify=True)
    assert view.show("n", "last") == [(2, "t3")]
    table.append(documents([1]))
    found = view.refresh(verify=True)
    assert found["mode"] == "full"
    assert "is an Iceberg table" in found["reason"]
    assert view.show("n", "last") == [(3, "t3")]
    assert view.refresh()["mode"] == "none"
    source.append(9)
    assert view.refresh(verify=True)["mode"] == "full"


def test_functions_follow_an_iceberg_table_through_a_view_and_see_new_rows_only(
    server: Server, rest: RestCatalog, tmp_path: Path
) -> None:
    table = make_table(rest, 1, 2)
    base = view_of(server, table, "SELECT id, text FROM ice", "base")
    log = tmp_path / "calls"
    words = recording(log, lambda text: ({"word": each} for each in text.split()))
    spec = udtf_spec("chunker", words, ["text"], {"word": pa.string()})
    chunks = make_view(base, "SELECT id, text FROM base", "c", log, kind="chunker", udtf_spec=spec)
    job = chunks.request(cascade=True)
    assert chunks.finish(job)["status"] == "SUCCEEDED"
    assert len(chunks.take_calls()) == 2
    table.append(documents([3]))
    job = chunks.request(cascade=True)
    assert chunks.finish(job)["status"] == "SUCCEEDED"
    assert chunks.take_calls() == documents([3])["text"].to_pylist()
    words_of = [word for text in documents([1, 2, 3])["text"].to_pylist() for word in text.split()]
    assert sorted(chunks.show("word")) == sorted((word,) for word in words_of)


def test_files_outside_the_tables_folder_are_not_read(server: Server, rest: RestCatalog) -> None:
    table, other = make_table(rest, 1), make_table(rest, 9)
    view = view_of(server, table, "SELECT id FROM ice")
    view.refresh()
    document = load(server, table)
    requires, updates = iceberg_tables.append(document)
    stolen = other.current_snapshot()
    assert stolen is not None
    updates[0]["snapshot"]["manifest-list"] = stolen.manifest_list
    send(server, table, requires, updates)
    found = view.finish(view.request())
    assert found["status"] == "FAILED"
    assert "not in the table's folder" in found["error"]
    assert view.show("id") == [(1,)]


def test_a_view_follows_its_table_through_a_rename_and_keeps_it_from_being_dropped(
    server: Server, rest: RestCatalog
) -> None:
    table = make_table(rest, 1)
    view = view_of(server, table, "SELECT id FROM ice")
    namespace, name = table.name()
    refused = server.client.delete(iceberg_tables.path(namespace, name))
    assert refused.status_code >= 400
    assert view.id.replace("$", ".") in refused.text or view.id in refused.text
    new = f"n{uuid.uuid4().hex[:6]}"
    rest.rename_table(table.name(), (namespace, new))
    view.refresh(verify=True)
    assert view.show("id") == [(1,)]


def test_a_view_of_an_iceberg_table_is_altered_like_others(
    server: Server, rest: RestCatalog
) -> None:
    table = make_table(rest, 1, 2)
    view = view_of(server, table, "SELECT id, text FROM ice")
    view.refresh()
    body = {"source_query": "SELECT id, title FROM ice WHERE id > 1"}
    answer = server.post(f"/v1/materialized_view/{view.id}/alter", body)
    assert answer.status_code == 202, answer.text
    assert view.finish(answer.json()["job_id"])["status"] == "SUCCEEDED"
    assert view.show("id", "title") == [(2, "t2")]
    table.append(documents([3]))
    assert view.refresh(verify=True)["mode"] == "incremental"
    assert view.show("id", "title") == [(2, "t2"), (3, "t3")]
