"""CreateTable: rows and table in one step, or nothing at all."""

import json
from pathlib import Path

import lance
import pytest

from tests.harness.data.arrow import people, read_back, send, to_stream, versions
from tests.harness.processes.servers import Server


def folders(server: Server) -> set[str]:
    return {path.name for path in server.lake.iterdir()} if server.lake.exists() else set()


def test_a_created_table_has_its_rows_and_one_version(server: Server, namespace: str) -> None:
    made = send(server, f"/v1/table/{namespace}$t/create", people(1, 2)).json()
    assert made["version"] == 1
    assert read_back(server, f"{namespace}$t") == people(1, 2).to_pylist()
    assert versions(server, f"{namespace}$t") == [1]


def test_a_created_table_has_stable_row_ids_and_v2_names(server: Server, namespace: str) -> None:
    made = send(server, f"/v1/table/{namespace}$t/create", people(1)).json()
    assert lance.dataset(made["location"]).has_stable_row_ids
    assert (Path(made["location"]) / "_versions" / f"{2**64 - 2}.manifest").exists()


def test_create_refuses_a_table_that_has_rows(server: Server, namespace: str) -> None:
    path = f"/v1/table/{namespace}$t/create"
    send(server, path, people(1)).raise_for_status()
    before = folders(server)
    again = send(server, path, people(2))
    assert (again.status_code, again.json()["code"]) == (409, 5)
    assert read_back(server, f"{namespace}$t") == people(1).to_pylist()
    assert folders(server) == before


@pytest.mark.parametrize("mode", ["exist_ok", "ExistOk"])
def test_exist_ok_keeps_what_is_there(server: Server, namespace: str, mode: str) -> None:
    path = f"/v1/table/{namespace}$t/create"
    send(server, path, people(1)).raise_for_status()
    kept = send(server, path, people(2), mode=mode).json()
    assert kept["version"] == 1
    assert read_back(server, f"{namespace}$t") == people(1).to_pylist()


def test_overwrite_replaces_rows_and_schema_in_a_new_version(
    server: Server, namespace: str
) -> None:
    path = f"/v1/table/{namespace}$t/create"
    send(server, path, people(1)).raise_for_status()
    other = people(7).rename_columns(["id", "title"])
    assert send(server, path, other, mode="Overwrite").json()["version"] == 2
    assert read_back(server, f"{namespace}$t") == other.to_pylist()


def test_a_declared_table_is_filled(server: Server, namespace: str) -> None:
    location = server.post(f"/v1/table/{namespace}$t/declare").json()["location"]
    made = send(server, f"/v1/table/{namespace}$t/create", people(1)).json()
    assert (made["location"], made["version"]) == (location, 1)


def test_properties_come_by_query_or_by_header(server: Server, namespace: str) -> None:
    text = json.dumps({"owner": "ann"})
    send(server, f"/v1/table/{namespace}$q/create", people(1), properties=text)
    headers = {"x-lance-table-properties": text}
    send(server, f"/v1/table/{namespace}$h/create", people(1), headers)
    for name in ("q", "h"):
        described = server.post(f"/v1/table/{namespace}${name}/describe").json()
        assert described["properties"] == {"owner": "ann"}


def test_a_location_comes_by_header(server: Server, namespace: str) -> None:
    headers = {"x-lance-table-location": f"mine-{namespace}"}
    made = send(server, f"/v1/table/{namespace}$t/create", people(1), headers).json()
    assert made["location"] == str(server.lake / f"mine-{namespace}")


@pytest.mark.parametrize(
    ("params", "body", "expected"),
    [
        ({"mode": "perhaps"}, people(1), (400, 13)),
        ({"properties": "[]"}, people(1), (400, 13)),
        ({}, b"", (400, 13)),
        ({}, b"junk", (400, 13)),
        ({}, to_stream(people(*range(100)))[:-200], (400, 13)),
    ],
)
def test_a_bad_request_leaves_no_table_and_no_files(
    server: Server, namespace: str, params: dict[str, str], body: bytes, expected: tuple[int, int]
) -> None:
    before = folders(server)
    answer = send(server, f"/v1/table/{namespace}$t/create", body, **params)
    assert (answer.status_code, answer.json()["code"]) == expected
    assert server.post(f"/v1/table/{namespace}$t/exists").status_code == 404
    assert folders(server) == before


def test_a_missing_namespace_is_told_before_the_upload(server: Server) -> None:
    answer = send(server, "/v1/table/nowhere$t/create", people(1))
    assert (answer.status_code, answer.json()["code"]) == (404, 1)
