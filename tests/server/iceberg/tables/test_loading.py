"""Iceberg tables: made, loaded whole or in part, listed page by page, found or not."""

import pytest

from tests.harness.clients import iceberg_tables as tables
from tests.harness.processes.servers import Server


def test_a_table_is_made_with_a_folder_of_its_own(server: Server, namespace: str) -> None:
    made = tables.make(server, namespace)
    metadata = made["metadata"]
    folder = tables.local(metadata["location"])
    assert folder.parent == server.lake.resolve()
    assert folder.name == f"{namespace}.t-{metadata['table-uuid'].replace('-', '')[:16]}.iceberg"
    assert tables.files(made["metadata-location"])[0].startswith("00000-")
    assert (metadata["format-version"], metadata["current-schema-id"]) == (2, 0)
    assert tables.load(server, namespace) == {**made, "config": {}}


def test_the_properties_of_a_request_are_the_tables(server: Server, namespace: str) -> None:
    more = {"format-version": "3", "a": "b", "write.metadata.compression-codec": "gzip"}
    made = tables.make(server, namespace, properties=more)
    assert made["metadata"]["format-version"] == 3
    assert made["metadata"]["properties"]["a"] == "b"
    assert made["metadata-location"].endswith(".gz.metadata.json")
    tables.load(server, namespace)


def test_a_staged_table_is_told_and_nothing_is_made(server: Server, namespace: str) -> None:
    staged = tables.make(server, namespace, stage=True)
    assert "metadata-location" not in staged
    assert server.get(tables.path(namespace)).status_code == 404
    assert not tables.local(staged["metadata"]["location"]).exists()


def test_a_staged_table_is_made_by_its_first_commit(server: Server, namespace: str) -> None:
    staged = tables.make(server, namespace, stage=True, properties={"a": "b"})["metadata"]
    tables.finish(namespace, "t", staged).send(server).raise_for_status()
    found = tables.load(server, namespace)["metadata"]
    for key in ("table-uuid", "location", "schemas", "partition-specs", "properties"):
        assert found[key] == staged[key], key


def test_who_has_the_table_as_it_is_hears_304(server: Server, namespace: str) -> None:
    made = tables.make(server, namespace)
    path = tables.path(namespace)
    first = server.get(path)
    tag = first.headers["etag"]
    again = server.client.get(path, headers={"If-None-Match": tag})
    assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", tag)
    listed = server.client.get(path, headers={"If-None-Match": f'"other", W/{tag}'})
    assert listed.status_code == 304
    tables.append_to(namespace, "t", made["metadata"]).send(server).raise_for_status()
    newer = server.client.get(path, headers={"If-None-Match": tag})
    assert newer.status_code == 200
    assert newer.headers["etag"] != tag


def test_the_tag_of_a_made_table_is_that_of_the_loaded_one(server: Server, namespace: str) -> None:
    made = tables.create(namespace).send(server)
    committed = tables.append_to(namespace, "t", made.json()["metadata"]).send(server)
    assert committed.headers["etag"] != made.headers["etag"]
    assert server.get(tables.path(namespace)).headers["etag"] == committed.headers["etag"]


def test_snapshots_without_a_reference_are_left_out_when_that_is_asked(
    server: Server, namespace: str
) -> None:
    metadata = tables.make(server, namespace)["metadata"]
    for _ in range(2):
        answer = tables.append_to(namespace, "t", metadata).send(server).raise_for_status()
        metadata = answer.json()["metadata"]
    refs = server.get(tables.path(namespace), snapshots="refs")
    whole = server.get(tables.path(namespace), snapshots="all")
    assert [each["snapshot-id"] for each in refs.json()["metadata"]["snapshots"]] == [
        metadata["current-snapshot-id"]
    ]
    assert whole.json()["metadata"] == metadata
    assert refs.headers["etag"] != whole.headers["etag"]
    assert server.get(tables.path(namespace), snapshots="some").status_code == 400


def test_a_large_answer_is_compressed_for_who_takes_it(server: Server, namespace: str) -> None:
    tables.make(server, namespace, properties={"text": "x" * 50_000})
    path = tables.path(namespace)
    plain = server.client.get(path, headers={"Accept-Encoding": "identity"})
    assert "content-encoding" not in plain.headers
    for _ in range(2):
        packed = server.client.get(path, headers={"Accept-Encoding": "gzip"})
        assert packed.headers["content-encoding"] == "gzip"
        assert packed.json() == plain.json()


def test_tables_are_listed_page_by_page(server: Server, namespace: str) -> None:
    for name in "cab":
        tables.make(server, namespace, name)
    server.post(f"/v1/table/{namespace}$lance/declare").raise_for_status()
    path = f"{tables.ROOT}/namespaces/{namespace}/tables"
    whole = server.get(path).json()
    assert [each["name"] for each in whole["identifiers"]] == ["a", "b", "c"]
    assert whole["identifiers"][0]["namespace"] == [namespace]
    first = server.get(path, pageToken="", pageSize="2").json()
    assert [each["name"] for each in first["identifiers"]] == ["a", "b"]
    rest = server.get(path, pageToken=first["next-page-token"], pageSize="2").json()
    assert [each["name"] for each in rest["identifiers"]] == ["c"]
    assert rest["next-page-token"] is None
    missing = server.get(f"{tables.ROOT}/namespaces/nowhere/tables")
    assert missing.json()["error"]["type"] == "NoSuchNamespaceException"


def test_a_table_exists_or_not(server: Server, namespace: str) -> None:
    tables.make(server, namespace)
    assert server.client.head(tables.path(namespace)).status_code == 204
    for method, name in (("HEAD", "x"), ("GET", "x"), ("DELETE", "x"), ("POST", "x")):
        nothing: tables.Json = {"requirements": [], "updates": []}
        body = nothing if method == "POST" else None
        answer = server.client.request(method, tables.path(namespace, name), json=body)
        assert answer.status_code == 404
        if method != "HEAD":
            told = answer.json()["error"]
            assert told["type"] == "NoSuchTableException"
            assert told["message"] == f"Table does not exist: {namespace}.x"


def test_a_metadata_file_that_was_taken_away_is_missed(server: Server, namespace: str) -> None:
    """testLoadTableWithMissingMetadataFile, of Iceberg's compatibility kit"""
    made = tables.make(server, namespace)
    tag = server.get(tables.path(namespace)).headers["etag"]
    file = tables.local(made["metadata-location"])
    content = file.read_bytes()
    file.unlink()
    for headers in ({}, {"If-None-Match": tag}):
        found = server.client.get(tables.path(namespace), headers=headers)
        assert found.status_code == 404, found.text
        told = found.json()["error"]
        assert told["type"] == "NotFoundException"
        assert (
            f"Failed to open input stream for file: {made['metadata-location']}"
            in (told["message"])
        )
    file.write_bytes(content)
    assert tables.load(server, namespace) == made | {"config": {}}


def test_reports_are_accepted_for_tables_that_are_there(server: Server, namespace: str) -> None:
    tables.make(server, namespace)
    path = f"{tables.path(namespace)}/metrics"
    assert server.post(path, {"report-type": "scan-report"}).status_code == 204
    assert server.post(path, []).status_code == 400
    assert server.post(f"{tables.path(namespace, 'x')}/metrics", {}).status_code == 404


def test_a_local_lake_gives_no_credentials(server: Server, namespace: str) -> None:
    made = tables.make(server, namespace)
    found = server.get(f"{tables.path(namespace)}/credentials")
    assert found.json() == {"storage-credentials": []}
    asked = {"X-Iceberg-Access-Delegation": "vended-credentials"}
    loaded = server.client.get(tables.path(namespace), headers=asked)
    assert loaded.json() == {**made, "config": {}}


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ([], 400),
        ({}, 400),
        ({"name": "t"}, 400),
        ({"name": "", "schema": tables.schema()}, 400),
        ({"name": "a/b\x00", "schema": tables.schema()}, 400),
        ({"name": "t", "schema": {"type": "struct", "fields": 7}}, 400),
        ({"name": "t", "schema": tables.schema(), "location": "s3://elsewhere/x"}, 403),
        ({"name": "t", "schema": tables.schema(), "location": "relative"}, 400),
        ({"name": "t", "schema": tables.schema(), "properties": {"format-version": "9"}}, 400),
        ({"name": "t", "schema": tables.schema(), "properties": {"a": 1}}, 400),
    ],
)
def test_what_cannot_be_a_table_is_refused(
    server: Server, namespace: str, body: object, status: int
) -> None:
    path = f"{tables.ROOT}/namespaces/{namespace}/tables"
    answer = server.post(path, body)
    assert answer.status_code == status, answer.text
    assert server.get(path).json()["identifiers"] == []


def test_a_table_needs_a_namespace(server: Server) -> None:
    answer = tables.create("nowhere").send(server)
    assert (answer.status_code, answer.json()["error"]["type"]) == (404, "NoSuchNamespaceException")
