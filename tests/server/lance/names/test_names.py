"""Names in paths: whatever a client or a proxy makes of a path, it never means something else."""

import http.client
from typing import Any
from urllib.parse import quote, urlsplit

import pytest

from tests.harness.data.arrow import people, send
from tests.harness.data.functions import new_column, virtual_column
from tests.harness.data.tables import code
from tests.harness.processes.servers import Server

ELSEWHERE = ["..", ".", "%2e%2e", ".%2e", "%252e%252e", "..;a", "a/../b", "x\\..\\y", " ", "..%2fx"]


@pytest.fixture(scope="module")
def table(server: Server) -> str:
    """The id of a table with rows."""
    server.post("/v1/namespace/names/create").raise_for_status()
    send(server, "/v1/table/names$t/create", people(1, 2)).raise_for_status()
    return "names$t"


def raw(server: Server, path: str, body: bytes = b"{}") -> int:
    """Send a path exactly as it is written; returns the status."""
    connection = http.client.HTTPConnection(urlsplit(server.url).netloc, timeout=60)
    try:
        connection.request("POST", path, body, {"content-type": "application/json"})
        return connection.getresponse().status
    finally:
        connection.close()


def bodies(name: str) -> dict[str, dict[str, Any]]:
    """Every request about a table that gives something a name."""
    function = virtual_column(b"code", ["id"], {"made": "int32"}, name=name)
    return {
        "create_index": {"column": "id", "index_type": "BTREE", "name": name},
        "create_scalar_index": {"column": "id", "index_type": "BTREE", "name": name},
        "tags/create": {"tag": name, "version": 1},
        "branches/create": {"name": name},
        "rename": {"new_table_name": name},
        "add_columns": {"new_columns": [new_column(function)]},
    }


@pytest.mark.parametrize("name", ELSEWHERE)
def test_nothing_gets_a_name_that_leads_elsewhere(server: Server, table: str, name: str) -> None:
    for operation, body in bodies(name).items():
        answer = server.post(f"/v1/table/{table}/{operation}", body)
        assert code(answer) == (400, 13), (operation, answer.text)
        assert answer.json()["detail"], operation
    assert server.post(f"/v1/table/{table}/index/list").json()["indexes"] == []


@pytest.mark.parametrize("name", ELSEWHERE)
def test_no_path_names_what_leads_elsewhere(server: Server, table: str, name: str) -> None:
    written = quote(name, safe="").replace(".", "%2E")
    for path in (
        *(f"namespace/names${written}/create", f"table/names${written}/declare"),
        *(f"materialized_view/names${written}/create", f"manifest/{written}/create"),
        *(f"transaction/{written}/describe", f"jobs/{written}/events"),
    ):
        assert raw(server, f"/v1/{path}") == 400, path
    assert server.post(f"/v1/table/{table}/exists").status_code == 200


@pytest.mark.parametrize("name", ["a/b", "a\\b", "/", "\\", "x\ny"])
def test_an_index_is_one_part_of_its_path(server: Server, table: str, name: str) -> None:
    body = {"column": "id", "index_type": "BTREE", "name": name}
    assert code(server.post(f"/v1/table/{table}/create_index", body)) == (400, 13)


def test_an_index_without_a_name_does_not_get_such_a_one_from_its_column(
    server: Server, table: str
) -> None:
    rows = people(1).rename_columns(["%2e%2e/x", "name"])
    send(server, "/v1/table/names$odd/create", rows, mode="overwrite").raise_for_status()
    body = {"column": "%2e%2e/x", "index_type": "BTREE"}
    assert code(server.post("/v1/table/names$odd/create_index", body)) == (400, 13)
    body["name"] = "by_x"
    assert server.post("/v1/table/names$odd/create_index", body).status_code == 200
