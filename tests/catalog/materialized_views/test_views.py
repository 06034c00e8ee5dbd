"""Materialized views created and described: the table, the record, the first refresh."""

from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

from tests.harness.clients import iceberg_requests as iceberg
from tests.harness.data.arrow import send
from tests.harness.data.calls import pickled
from tests.harness.data.functions import b64, pack
from tests.harness.data.tables import code, open_by_path
from tests.harness.jobs.fake_runner import TEXTS, Runner, describe, make_table
from tests.harness.processes.servers import Server
from tests.harness.views.server_views import (
    QUERY,
    View,
    ask_create,
    make_iceberg_view,
    make_view,
    tag_of,
)


@pytest.fixture
def view(server: Server, cluster: str) -> View:
    return make_view(server, cluster)


def to_base64(schema: pa.Schema) -> str:
    return b64(schema.serialize().to_pybytes())


def open_table(view: View) -> lance.LanceDataset:
    return lance.dataset(view.ask_table("describe").json()["location"])


def chunker_spec() -> dict[str, Any]:
    schema = pa.schema([("word", pa.string())])
    code = {
        "name": "words",
        "version": "1",
        "chunker_payload": b64(pickled(lambda text: [{"word": text}])),
        "output_schema_bytes": to_base64(schema),
        "input_columns": ["text"],
        "batch": False,
    }
    packed = pack(code)
    return {"kind": "chunker", "udtf": packed, "udtf_name": "words", "udtf_version": "1"}


def test_a_view_is_a_table_without_rows_that_tells_what_it_is(view: View) -> None:
    table = open_table(view)
    assert table.schema.names == ["__source_row_id", "id", "text"]
    assert (table.version, table.count_rows(), table.has_stable_row_ids) == (1, 0, True)
    metadata = {k.decode(): v.decode() for k, v in (table.schema.metadata or {}).items()}
    assert metadata == {
        "penstock.view": "query",
        "geneva::view::version": "2",
        "geneva::view::query": QUERY,
    }
    told = view.tell()
    assert (told["kind"], told["source_query"], told["watermark"]) == ("query", QUERY, "{}")
    assert (told["stale"], told["auto_refresh"]) == ("true", "false")
    assert told["pending"] == f'{{"{view.source}":1}}'
    assert "refreshed_at" not in told
    listed = view.server.get(f"/v1/namespace/{view.namespace}/table/list").json()["tables"]
    assert listed == ["t", "v"]
    shown = view.server.get(f"/v1/namespace/{view.namespace}/materialized_view/list").json()
    assert shown == {"views": ["v"]}
    assert view.server.post("/v1/jobs/list", {"target": view.id}).json()["jobs"] == []


def test_with_data_the_first_refresh_is_queued(server: Server, cluster: str) -> None:
    source = make_table(server)
    id = f"{source.split('$')[0]}$v"
    answer = ask_create(server, id, with_no_data=False, cluster=cluster)
    assert answer.status_code == 201
    assert answer.json()["version"] == 1
    job = Runner(server, cluster).lease()[0]
    assert job["id"] == answer.json()["job_id"]
    assert (job["kind"], job["spec"]["mode"]) == ("refresh", "auto")
    assert describe(server, job["id"])["target"] == id


def test_the_body_of_lancedb_is_enough(server: Server, cluster: str) -> None:
    source = make_table(server)
    id = f"{source.split('$')[0]}$v"
    body = {"query": 'SELECT `id` AS "id" FROM "t" WHERE id > 1', "with_no_data": True}
    answer = server.post(f"/v1/materialized_view/{id}/create", body)
    assert (answer.status_code, answer.json()) == (202, {"version": 1})
    found = server.post(f"/v1/materialized_view/{id}/describe").json()
    assert (found["query"], found["source_table"], found["kind"]) == (body["query"], "t", "query")
    assert [each["output_column"] for each in found["projections"]] == ["id"]


SCRIPT = (
    "SELECT DISTINCT text FROM (SELECT TRANSFORM(text) USING 'sh -c id' AS (text string) FROM t) q"
)
HIDDEN = (
    "SELECT 'a' /* /*+ */ || reflect('java.lang.System', 'getProperty', 'a') -- */\nAS text FROM t"
)
ONE_TEXT = to_base64(pa.schema([("text", pa.string())]))


@pytest.mark.parametrize(
    ("body", "error"),
    [
        ({"kind": None}, (400, 13)),
        ({"kind": "nope"}, (400, 13)),
        ({"source_query": None}, (400, 13)),
        ({"source_query": ""}, (400, 13)),
        ({"source_query": "SELECT id FROM"}, (400, 13)),
        ({"source_query": "SELECT nope FROM t"}, (400, 13)),
        ({"source_query": "SELECT id FROM nowhere"}, (400, 13)),
        ({"source_query": "SELECT rand() FROM t"}, (400, 13)),
        ({"source_query": SCRIPT, "output_schema": ONE_TEXT}, (400, 13)),
        ({"source_query": HIDDEN, "output_schema": ONE_TEXT}, (400, 13)),
        ({"query": "SELECT id FROM t"}, (400, 13)),
        ({"udtf_spec": {}}, (400, 13)),
        ({"kind": "chunker"}, (400, 13)),
        ({"output_schema": "?"}, (400, 13)),
        ({"output_schema": to_base64(pa.schema([("nope", pa.int64())]))}, (400, 20)),
        ({"cluster": "nowhere"}, (400, 13)),
        ({"target_lag_seconds": 0}, (400, 13)),
        ({"auto_refresh": "yes"}, (400, 13)),
    ],
)
def test_what_cannot_work_is_refused_and_leaves_nothing(
    view: View, body: dict[str, Any], error: tuple[int, int]
) -> None:
    answer = ask_create(view.server, f"{view.namespace}$w", **body)
    assert code(answer) == error, answer.text
    listed = view.server.get(f"/v1/namespace/{view.namespace}/table/list").json()["tables"]
    assert listed == ["t", "v"]


def test_a_table_that_is_not_there_brings_names_that_are_like_it(view: View) -> None:
    answer = ask_create(view.server, f"{view.namespace}$w", source_query="SELECT id FROM tt")
    assert code(answer) == (400, 13)
    assert view.source in answer.json()["detail"]


def test_names_are_taken_once_for_tables_and_views(view: View) -> None:
    server, namespace = view.server, view.namespace
    assert code(ask_create(server, view.id)) == (409, 5)
    assert code(ask_create(server, view.source)) == (409, 5)
    assert code(server.post(f"/v1/table/{view.id}/declare")) == (409, 5)
    assert code(send(server, f"/v1/table/{view.id}/create", TEXTS)) == (409, 5)
    assert code(send(server, f"/v1/table/{view.id}/create", TEXTS, mode="overwrite")) == (400, 19)
    assert code(ask_create(server, f"{namespace}x$w")) == (404, 1)
    kept = send(server, f"/v1/table/{view.id}/create", TEXTS, mode="exist_ok")
    assert kept.json()["version"] == 1


def test_the_code_of_a_function_is_kept_with_the_view(server: Server, cluster: str) -> None:
    schema = pa.schema([("id", pa.int64()), ("word", pa.string())])
    view = make_view(
        server,
        cluster,
        kind="scalar_udtf",
        source_query="SELECT id, text FROM t",
        udtf_spec=chunker_spec(),
        output_schema=to_base64(schema),
    )
    table = open_table(view)
    assert (table.schema.metadata or {})[b"geneva::view::version"] == b"chunker"
    assert table.schema.names == ["__source_row_id", "__child_index", "id", "word"]
    view.request(output_limit=5)
    spec = view.lease()["spec"]
    function = spec["definition"]["function"]
    assert (function["name"], spec["output_limit"]) == ("words", 5)
    assert (Path(table.uri) / "_udfs" / function["sha256"]).is_file()


def test_a_renamed_table_and_a_renamed_view_go_on(view: View) -> None:
    server, namespace = view.server, view.namespace
    server.post(f"/v1/table/{view.source}/rename", {"new_table_name": "u"}).raise_for_status()
    server.post(f"/v1/table/{view.id}/rename", {"new_table_name": "w"}).raise_for_status()
    # What has the old name now is another table.
    send(server, f"/v1/table/{view.source}/create", TEXTS).raise_for_status()
    renamed = View(server, f"{namespace}$u", f"{namespace}$w", view.cluster)
    id = renamed.request()
    server.post(f"/v1/table/{renamed.source}/rename", {"new_table_name": "u2"}).raise_for_status()
    job = renamed.lease()
    assert (job["id"], job["spec"]["table"]) == (id, [namespace, "w"])
    assert job["spec"]["definition"]["sources"][0]["table"] == [namespace, "u2"]


def replace_iceberg_view(view: View, name: str, sql: str) -> None:
    request = iceberg.replace(view.namespace, name, sql)
    request.body["updates"][0]["view-version"]["default-namespace"] = [view.namespace]
    request.send(view.server).raise_for_status()


def test_a_view_follows_an_iceberg_view(view: View) -> None:
    server, namespace = view.server, view.namespace
    make_iceberg_view(view.server, view.namespace, "i", "SELECT id FROM t WHERE id > 2")
    id = f"{namespace}$m"
    ask_create(server, id, source_query='{"iceberg_view": ["i"]}').raise_for_status()
    made = View(server, view.source, id, view.cluster)
    made.refresh()
    assert made.tell()["stale"] == "false"
    dropped = iceberg.drop(namespace, "i").send(server)
    assert (dropped.status_code, id in dropped.text) == (409, True)
    assert "cascade" not in dropped.text
    replace_iceberg_view(view, "i", "SELECT id FROM t WHERE id > 1")
    assert made.tell()["stale"] == "true"
    made.refresh()
    assert made.tell()["stale"] == "false"


def test_versions_are_let_go_of_tables_that_a_view_does_not_read_any_more(view: View) -> None:
    server, namespace = view.server, view.namespace
    send(server, f"/v1/table/{namespace}$u/create", TEXTS).raise_for_status()
    make_iceberg_view(view.server, view.namespace, "i", "SELECT id FROM t")
    made = ask_create(server, f"{namespace}$w", source_query='{"iceberg_view": ["i"]}')
    made.raise_for_status()
    over = View(server, view.source, f"{namespace}$w", view.cluster)
    source = open_by_path(server, view.source)
    source.tags.create(tag_of(over), 1)
    over.request()
    assert list(source.tags.list()) == [tag_of(over)]
    replace_iceberg_view(view, "i", "SELECT id FROM u")
    over.request(mode="full")
    assert list(source.tags.list()) == []


def test_a_circle_is_refused(view: View) -> None:
    server, namespace = view.server, view.namespace
    make_iceberg_view(view.server, view.namespace, "i", "SELECT id FROM t")
    id = f"{namespace}$m"
    ask_create(server, id, source_query="SELECT id FROM i").raise_for_status()
    replace_iceberg_view(view, "i", "SELECT id FROM m")
    answer = server.post(f"/v1/materialized_view/{id}/refresh")
    assert code(answer) == (400, 13)
    assert "reads itself" in answer.json()["error"]
    replace_iceberg_view(view, "i", "SELECT id FROM j")
    make_iceberg_view(view.server, view.namespace, "j", "SELECT id FROM i")
    answer = server.post(f"/v1/materialized_view/{id}/refresh")
    assert code(answer) == (400, 13)
    assert "circle" in answer.json()["error"]


def test_how_a_view_refreshes_itself_is_altered(view: View) -> None:
    changed = view.ask("alter", {"auto_refresh": True, "target_lag_seconds": 100_000})
    told = changed.raise_for_status().json()["properties"]
    assert told["penstock.auto_refresh"] == "true"
    assert told["penstock.target_lag_seconds"] == "100000"
    view.ask("alter", {"auto_refresh": False, "target_lag_seconds": None}).raise_for_status()
    assert "target_lag_seconds" not in view.tell()
    assert code(view.ask("alter", {})) == (400, 13)
    assert code(view.server.post(f"/v1/materialized_view/{view.source}/alter", {})) == (400, 13)


@pytest.mark.parametrize("operation", ["refresh", "explain", "describe", "drop"])
def test_a_table_is_no_view(view: View, operation: str) -> None:
    path = "/v1/materialized_view"
    assert code(view.server.post(f"{path}/{view.source}/{operation}")) == (400, 19)
    assert code(view.server.post(f"{path}/{view.namespace}$nope/{operation}")) == (404, 4)
