"""Operations on rows of tables that lie on S3, on a local moto server."""

import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import urlsplit

import lance
import pyarrow as pa
import pytest
from lance.blob import blob_array, blob_field

from tests.harness.data.arrow import people, send, to_stream, versions
from tests.harness.data.tables import code, new_name
from tests.harness.processes.s3 import BUCKET, Store, serving
from tests.harness.processes.servers import Server

WRITERS = 8


@pytest.fixture(scope="module")
def server(store: Store, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serving(store, tmp_path_factory.mktemp("data")) as started:
        yield started


@pytest.fixture
def table(server: Server) -> str:
    """A table with the rows 1, 2 and 3."""
    name = new_name()
    send(server, f"/v1/table/{name}/create", people(1, 2, 3)).raise_for_status()
    return name


def describe(server: Server, table: str) -> dict[str, Any]:
    found: dict[str, Any] = server.post(f"/v1/table/{table}/describe").raise_for_status().json()
    return found


def folder(server: Server, table: str) -> str:
    """The key of the table's folder."""
    return str(describe(server, table)["location"]).removeprefix(f"s3://{BUCKET}/")


def ids(server: Server, table: str, **body: Any) -> list[int]:
    """The ids that a query finds."""
    answer = server.post(f"/v1/table/{table}/query", body).raise_for_status()
    return sorted(pa.ipc.open_file(answer.content).read_all()["id"].to_pylist())


def long_rows(start: int) -> pa.Table:
    """More than the server takes in whole."""
    return people(*range(start, start + 150_000), name="x" * 30)


def test_a_table_is_created_with_rows(server: Server, store: Store, table: str) -> None:
    found = describe(server, table)
    assert found["location"].startswith(f"s3://{BUCKET}/lake/")
    assert versions(server, table) == [1]
    by_path = lance.dataset(found["location"], storage_options=store.options)
    assert by_path.to_table()["id"].to_pylist() == [1, 2, 3]
    assert by_path.has_stable_row_ids


def test_a_taken_name_is_refused_and_its_rows_stay(server: Server, table: str) -> None:
    assert code(send(server, f"/v1/table/{table}/create", people(9))) == (409, 5)
    assert ids(server, table) == [1, 2, 3]


def test_rows_are_replaced(server: Server, table: str) -> None:
    send(server, f"/v1/table/{table}/insert", people(7, 8), mode="overwrite").raise_for_status()
    assert ids(server, table) == [7, 8]


def test_rows_are_inserted_and_queried(server: Server, table: str) -> None:
    done = send(server, f"/v1/table/{table}/insert", people(4, 5)).raise_for_status().json()
    assert (done["version"], done["num_inserted_rows"]) == (2, 2)
    assert ids(server, table, filter="id > 2") == [3, 4, 5]
    assert ids(server, table, version=1) == [1, 2, 3]
    assert server.post(f"/v1/table/{table}/count_rows", {}).json() == 5


def test_a_long_insert_leaves_only_its_data(server: Server, store: Store, table: str) -> None:
    done = send(server, f"/v1/table/{table}/insert", long_rows(10)).raise_for_status().json()
    assert done["num_inserted_rows"] == 150_000
    assert server.post(f"/v1/table/{table}/count_rows", {}).json() == 150_003
    kinds = {key.split("/")[2] for key in store.keys(folder(server, table))}
    assert kinds == {"data", "_versions", "_transactions"}
    by_path = lance.dataset(describe(server, table)["location"], storage_options=store.options)
    assert by_path.count_rows() == 150_003


def test_parts_with_large_blobs_become_one_version(server: Server, store: Store) -> None:
    name, path = new_name(), "/v1/table/{}/multipart_write/{}"
    schema = pa.schema([pa.field("id", pa.int64()), blob_field("blob")])

    def some_rows(id: int, size: int) -> pa.Table:
        return pa.table([pa.array([id]), blob_array([bytes([id]) * size])], schema=schema)

    send(server, f"/v1/table/{name}/create", some_rows(1, 5_000_000)).raise_for_status()
    upload = {"upload_id": server.post(path.format(name, "create")).json()["upload_id"]}
    for id in (2, 3):
        part = {**upload, "upload_part_id": f"p{id}"}
        rows = some_rows(id, 5_000_000 * (id - 2) + 100_000)
        send(server, f"/v1/table/{name}/insert", rows, **part).raise_for_status()
    done = server.post(path.format(name, "complete"), None, **upload)
    assert done.raise_for_status().json() == {"version": 2}
    assert ids(server, name) == [1, 2, 3]
    body = {"column": "blob", "row_ids": [2, 0, 1]}
    found = server.post(f"/v1/table/{name}/fetch_blobs", body).raise_for_status()
    blobs = pa.ipc.open_file(found.content).read_all()["blob"].to_pylist()
    assert [(blob[:1], len(blob)) for blob in blobs] == [
        (b"\x03", 5_100_000),
        (b"\x01", 5_000_000),
        (b"\x02", 100_000),
    ]
    whole = server.get(f"/v1/table/{name}/blob/blob/2/bytes")
    assert (whole.status_code, len(whole.content)) == (200, 5_100_000)
    kinds = {key.split("/")[2] for key in store.keys(folder(server, name))}
    assert kinds == {"data", "_versions", "_transactions"}


def test_a_long_create_that_breaks_off_leaves_nothing(server: Server, store: Store) -> None:
    before, name = store.keys("lake/"), new_name()
    content = to_stream(long_rows(0))
    address = urlsplit(server.url)
    with socket.create_connection((address.hostname, address.port), timeout=30) as connection:
        head = f"POST /v1/table/{name}/create HTTP/1.1\r\nContent-Length: {len(content)}\r\n\r\n"
        connection.sendall(head.encode() + content[:5_000_000])
        server.wait_for_requests(1)
        time.sleep(0.5)
    server.wait_until_idle()
    assert server.post(f"/v1/table/{name}/exists").status_code == 404
    assert store.keys("lake/") == before


def test_a_long_insert_with_a_damaged_batch_leaves_nothing(
    server: Server, store: Store, table: str
) -> None:
    before = store.keys(folder(server, table))
    content = to_stream(long_rows(10))
    answer = send(server, f"/v1/table/{table}/insert", content[: len(content) - 3_000_000])
    assert code(answer) == (400, 13)
    assert store.keys(folder(server, table)) == before
    assert versions(server, table) == [1]


@pytest.mark.parametrize("rows", [people(3, 4), long_rows(3)], ids=["short", "long"])
def test_rows_are_merged(server: Server, table: str, rows: pa.Table) -> None:
    flags = {"when_matched_update_all": "true", "when_not_matched_insert_all": "true"}
    answer = send(server, f"/v1/table/{table}/merge_insert", rows, on="id", **flags)
    done = answer.raise_for_status().json()
    assert (done["num_updated_rows"], done["num_inserted_rows"]) == (1, rows.num_rows - 1)
    assert server.post(f"/v1/table/{table}/count_rows", {}).json() == rows.num_rows + 2


def test_rows_are_updated_and_deleted(server: Server, table: str) -> None:
    body = {"updates": [["name", "'new'"]], "predicate": "id = 2"}
    done = server.post(f"/v1/table/{table}/update", body).raise_for_status().json()
    assert (done["updated_rows"], done["version"]) == (1, 2)
    assert ids(server, table, filter="name = 'new'") == [2]
    gone = server.post(f"/v1/table/{table}/delete", {"predicate": "id = 1"}).raise_for_status()
    assert gone.json()["version"] == 3
    assert ids(server, table) == [2, 3]


def test_writers_at_once_all_get_in(server: Server, table: str) -> None:
    def insert(number: int) -> dict[str, Any]:
        answer = send(server, f"/v1/table/{table}/insert", people(100 + number))
        found: dict[str, Any] = answer.raise_for_status().json()
        return found

    with ThreadPoolExecutor(WRITERS) as threads:
        done = list(threads.map(insert, range(WRITERS)))
    assert ids(server, table, filter="id >= 100") == list(range(100, 100 + WRITERS))
    for number, each in enumerate(done):
        assert 100 + number in ids(server, table, version=each["version"])


def test_a_branch_is_written_apart(server: Server, table: str) -> None:
    server.post(f"/v1/table/{table}/branches/create", {"name": "b"}).raise_for_status()
    send(server, f"/v1/table/{table}/insert", people(4), branch="b").raise_for_status()
    assert ids(server, table, branch="b") == [1, 2, 3, 4]
    assert ids(server, table) == [1, 2, 3]


def test_a_column_and_an_index_are_made(server: Server, table: str) -> None:
    column = {"new_columns": [{"name": "twice", "expression": "id * 2"}]}
    server.post(f"/v1/table/{table}/add_columns", column).raise_for_status()
    index = {"column": "id", "index_type": "BTREE"}
    server.post(f"/v1/table/{table}/create_scalar_index", index).raise_for_status()
    listed = server.post(f"/v1/table/{table}/index/list").raise_for_status().json()
    assert [each["columns"] for each in listed["indexes"]] == [["id"]]
    assert ids(server, table, filter="twice = 4") == [2]


def test_a_drop_removes_every_object(server: Server, store: Store, table: str) -> None:
    place = folder(server, table)
    send(server, f"/v1/table/{table}/insert", long_rows(10)).raise_for_status()
    assert store.keys(f"{place}/")
    server.post(f"/v1/table/{table}/drop").raise_for_status()
    assert store.keys(f"{place}/") == []
    assert server.post(f"/v1/table/{table}/exists").status_code == 404
