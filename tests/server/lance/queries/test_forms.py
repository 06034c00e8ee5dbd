"""Rows in other forms than Arrow, and single values of them."""

import io
import uuid
from typing import Any

import httpx
import lance
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.harness.clients import iceberg_requests as views
from tests.harness.data.arrow import send
from tests.harness.processes.servers import Server

JSON_ROWS = "application/vnd.penstock.rows+json"
PNG = b"\x89PNG\r\n\x1a\n" + b"<script>" * 20
PAGE = b"<html><script>alert(1)</script>"


def ask(server: Server, path: str, body: Any, accept: str = JSON_ROWS) -> httpx.Response:
    return server.client.post(f"/v1/{path}", json=body, headers={"accept": accept})


@pytest.fixture
def pictures(server: Server, namespace: str) -> str:
    """A table with values of many kinds."""
    rows = pa.table(
        {
            "id": pa.array([1, 2, 3], pa.int64()),
            "photo": pa.array([PNG, PAGE, None], pa.large_binary()),
            "text": ["<b>hé</b>" * 100, "short", None],
            "vector": pa.array([[0.5, 1.5]] * 3, pa.list_(pa.float32(), 2)),
            "nested": pa.array([{"a": [1], "b c": b"x"}] * 3),
            "c d": ["blank"] * 3,
        }
    )
    name = f"{namespace}$pictures"
    send(server, f"/v1/table/{name}/create", rows).raise_for_status()
    return name


def row_ids(server: Server, table: str) -> list[str]:
    found = ask(server, f"table/{table}/query", {"k": 10, "columns": ["id"], "with_row_id": True})
    [at] = [n for n, each in enumerate(found.json()["columns"]) if each["name"] == "_rowid"]
    return [row[at] for row in found.json()["rows"]]


def cell(server: Server, table: str, **params: Any) -> httpx.Response:
    return server.client.get(f"/v1/table/{table}/cell", params=params)


def test_a_query_is_answered_as_json_when_that_is_asked_for(server: Server, pictures: str) -> None:
    answer = ask(server, f"table/{pictures}/query", {"k": 2, "filter": "id < 3"})
    assert answer.headers["content-type"] == JSON_ROWS
    told = answer.json()
    assert [each["kind"] for each in told["columns"]] == [
        *("number", "bytes", "text", "vector", "struct", "text")
    ]
    assert told["complete"] is True
    first = dict(zip([each["name"] for each in told["columns"]], told["rows"][0], strict=True))
    assert first["photo"] == {"kind": "bytes", "length": len(PNG), "media": "image/png"}
    assert first["text"]["length"] == 900
    assert first["vector"] == {"kind": "vector", "value": [0.5, 1.5], "length": 2}
    assert first["nested"]["value"]["a"] == {"kind": "list", "value": [1], "length": 1}
    assert told["rows"][1][1]["media"] is None


@pytest.mark.parametrize("accept", ["application/json", "*/*", "text/html", JSON_ROWS + "x"])
def test_whoever_asks_for_no_form_of_ours_gets_arrow(
    server: Server, pictures: str, accept: str
) -> None:
    answer = ask(server, f"table/{pictures}/query", {"k": 2}, accept)
    assert answer.headers["content-type"] == "application/vnd.apache.arrow.file"
    assert pa.ipc.open_file(answer.content).read_all().num_rows == 2


def test_rows_can_be_taken_away_as_csv_and_parquet(server: Server, pictures: str) -> None:
    body = {"k": 3, "columns": ["id", "text"]}
    table = f"table/{pictures}/query"
    answer = ask(server, table, body, "text/csv;q=0.9, */*")
    assert answer.headers["content-type"] == "text/csv"
    assert answer.text.splitlines()[2] == '2,"short"'
    answer = ask(server, table, body, "application/vnd.apache.parquet")
    assert pq.read_table(io.BytesIO(answer.content))["id"].to_pylist() == [1, 2, 3]
    answer = ask(server, table, {"k": 3}, "application/vnd.apache.parquet")
    assert pq.read_table(io.BytesIO(answer.content))["photo"].to_pylist()[0] == PNG


def test_a_statement_is_answered_in_each_form(server: Server, pictures: str) -> None:
    *namespace, name = pictures.split("$")
    body = {"sql": f"SELECT id, text FROM {name} WHERE id > 1", "namespace": namespace}
    told = ask(server, "sql", body).json()
    assert [row[0] for row in told["rows"]] == [2, 3]
    assert ask(server, "sql", body, "text/csv").text.startswith('"id","text"\n2,"short"\n')
    found = pq.read_table(
        io.BytesIO(ask(server, "sql", body, "application/vnd.apache.parquet").content)
    )
    assert found["id"].to_pylist() == [2, 3]
    count = {"sql": f"SELECT count(*) AS n FROM {name}", "namespace": namespace}
    assert ask(server, "sql", count).json()["rows"] == [[3]]


def test_rows_and_counts_of_an_iceberg_view_have_their_forms(
    server: Server, namespace: str, pictures: str
) -> None:
    sql = f"SELECT id, text FROM {namespace}.pictures WHERE id < 3"
    views.create(namespace, "v", sql).send(server).raise_for_status()
    told = ask(server, f"table/{namespace}$v/query", {"k": 10}).json()
    assert [row[0] for row in told["rows"]] == [1, 2]
    assert ask(server, f"table/{namespace}$v/count_rows", {}).json() == 2


def test_an_error_is_an_error_in_every_form(server: Server, pictures: str) -> None:
    for accept in (JSON_ROWS, "text/csv", "application/vnd.apache.parquet"):
        answer = ask(server, f"table/{pictures}/query", {"k": 1, "filter": "nope = 1"}, accept)
        assert answer.status_code in (400, 404)
        assert answer.headers["content-type"] == "application/json"


def test_large_results_come_whole_in_each_form(server: Server, namespace: str) -> None:
    rows = pa.table({"id": range(200_000), "t": ["some text"] * 200_000})
    send(server, f"/v1/table/{namespace}$big/create", rows).raise_for_status()
    path, body = f"table/{namespace}$big/query", {"k": 1_000_000}
    assert ask(server, path, body, "text/csv").text.count("\n") == 200_001
    parquet = ask(server, path, body, "application/vnd.apache.parquet").content
    assert pq.read_table(io.BytesIO(parquet)).num_rows == 200_000
    told = ask(server, path, body).json()
    assert (len(told["rows"]), told["complete"]) == (1000, False)


def test_a_picture_is_sent_as_what_its_bytes_say(server: Server, pictures: str) -> None:
    first, second, third = row_ids(server, pictures)
    answer = cell(server, pictures, column="photo", row_id=first)
    assert (answer.headers["content-type"], answer.content) == ("image/png", PNG)
    answer = cell(server, pictures, column="photo", row_id=second)
    assert answer.headers["content-type"] == "application/octet-stream"
    assert answer.headers["content-disposition"].startswith("attachment")
    assert cell(server, pictures, column="photo", row_id=third).status_code == 204


def test_no_value_can_be_a_page(server: Server, pictures: str) -> None:
    first, *_ = row_ids(server, pictures)
    kinds = {}
    for column in ("id", "photo", "text", "vector", "nested", "`c d`"):
        answer = cell(server, pictures, column=column, row_id=first)
        assert answer.status_code == 200, (column, answer.text)
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert "sandbox" in answer.headers["content-security-policy"]
        kinds[column] = answer.headers["content-type"].partition(";")[0]
    assert kinds == {
        "id": "application/json",
        "photo": "image/png",
        "text": "text/plain",
        "vector": "application/json",
        "nested": "application/json",
        "`c d`": "text/plain",
    }
    assert cell(server, pictures, column="text", row_id=first).text == "<b>hé</b>" * 100
    assert cell(server, pictures, column="nested.a", row_id=first).json() == [1]
    assert cell(server, pictures, column="nested", row_id=first).json() == {"a": [1], "b c": "eA=="}


def test_a_value_is_of_the_version_that_is_asked_for(server: Server, pictures: str) -> None:
    first, *_ = row_ids(server, pictures)
    change = {"predicate": "id = 1", "updates": [["text", "'new'"]]}
    server.post(f"/v1/table/{pictures}/update", change).raise_for_status()
    assert cell(server, pictures, column="text", row_id=first, version=1).text.startswith("<b>")
    found = [
        cell(server, pictures, column="text", row_id=each).text
        for each in row_ids(server, pictures)
    ]
    assert sorted(found) == ["", "new", "short"]
    assert cell(server, pictures, column="text", row_id=first, version=99).status_code == 404


@pytest.mark.parametrize(
    ("params", "status"),
    [
        ({}, 400),
        ({"column": "id"}, 400),
        ({"row_id": "0"}, 400),
        ({"column": "none", "row_id": "0"}, 404),
        ({"column": "id", "row_id": "-1"}, 400),
        ({"column": "id", "row_id": "x"}, 400),
        ({"column": "id", "row_id": "9" * 30}, 400),
        ({"column": "id", "row_id": str(2**63 - 1)}, 400),
        ({"column": "id", "row_id": "0", "version": "1.5"}, 400),
        ({"column": "", "row_id": "0"}, 400),
        ({"column": "a`b", "row_id": "0"}, 400),
        ({"column": "id\x00", "row_id": "0"}, 404),
    ],
)
def test_what_is_no_value_is_refused(
    server: Server, pictures: str, params: dict[str, str], status: int
) -> None:
    answer = cell(server, pictures, **params)
    assert answer.status_code == status, answer.text


def test_blobs_are_told_by_their_size_and_sent_whole(server: Server, namespace: str) -> None:
    name = f"{namespace}$blobs"
    field = pa.field("photo", pa.large_binary(), metadata={"lance-encoding:blob": "true"})
    schema = pa.schema([pa.field("id", pa.int64()), field])
    rows = pa.table({"id": [1, 2], "photo": [PNG, None]}, schema=schema)
    send(server, f"/v1/table/{name}/create", rows).raise_for_status()
    told = ask(server, f"table/{name}/query", {"k": 2}).json()
    assert told["columns"][1]["kind"] == "bytes"
    assert told["rows"][0][1]["length"] == len(PNG)
    first, second = row_ids(server, name)
    answer = cell(server, name, column="photo", row_id=first)
    assert (answer.headers.get("content-type"), answer.content) == ("image/png", PNG)
    assert cell(server, name, column="photo", row_id=second).status_code == 204


def test_blobs_of_the_newer_kind_are_sent_whole(server: Server, namespace: str) -> None:
    name = f"{namespace}$blobs{uuid.uuid4().hex[:4]}"
    schema = pa.schema([pa.field("id", pa.int64()), lance.blob_field("photo")])
    rows = pa.table({"id": [1, 2], "photo": lance.blob_array([PNG, None])}, schema=schema)
    send(server, f"/v1/table/{name}/create", rows).raise_for_status()
    told = ask(server, f"table/{name}/query", {"k": 2}).json()
    assert told["rows"][0][1] == {
        "kind": "bytes",
        "length": len(PNG),
        "media": None,
        "blob": True,
    }
    first, _ = row_ids(server, name)
    assert cell(server, name, column="photo", row_id=first).content == PNG
