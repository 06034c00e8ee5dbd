"""Clones of tables: lancedb's `clone_table`."""

from pathlib import Path

import httpx
import lance
import pytest

from tests.harness.data.arrow import people, read_back, send, versions
from tests.harness.data.functions import new_column, virtual_column
from tests.harness.data.tables import code, new_name
from tests.harness.processes import servers
from tests.harness.processes.access import GuardedServer, guarded
from tests.harness.processes.servers import Server
from tests.harness.processes.waiting import until


@pytest.fixture
def table(server: Server) -> str:
    """A table with the rows 1, 2 and 3, of which version 1 has only 1."""
    name = new_name()
    send(server, f"/v1/table/{name}/create", people(1)).raise_for_status()
    send(server, f"/v1/table/{name}/insert", people(2, 3)).raise_for_status()
    return name


def locate(server: Server, table: str) -> str:
    location: str = server.post(f"/v1/table/{table}/describe").raise_for_status().json()["location"]
    return location


def clone(server: Server, table: str, **body: object) -> httpx.Response:
    given = {"source_location": locate(server, table), "is_shallow": True, **body}
    return server.post(f"/v1/table/{table}copy/clone", given)


def test_a_clone_has_the_rows_and_outlives_its_source(server: Server, table: str) -> None:
    index = {"column": "id", "index_type": "BTREE", "name": "i"}
    server.post(f"/v1/table/{table}/create_scalar_index", index).raise_for_status()
    server.post(f"/v1/table/{table}/delete", {"predicate": "id = 2"}).raise_for_status()
    before = lance.dataset(locate(server, table)).to_table(with_row_id=True)
    made = clone(server, table).raise_for_status().json()
    server.post(f"/v1/table/{table}/drop").raise_for_status()
    assert lance.dataset(made["location"]).to_table(with_row_id=True) == before
    found = server.post(f"/v1/table/{table}copy/index/list").raise_for_status().json()
    assert [each["index_name"] for each in found["indexes"]] == ["i"]
    send(server, f"/v1/table/{table}copy/insert", people(9)).raise_for_status()
    assert [row["id"] for row in read_back(server, f"{table}copy")] == [1, 3, 9]
    assert versions(server, f"{table}copy") == [made["version"], made["version"] + 1]


def test_an_old_version_or_a_tag_is_cloned(server: Server, table: str) -> None:
    server.post(f"/v1/table/{table}/branches/create", {"name": "dev"}).raise_for_status()
    send(server, f"/v1/table/{table}/insert", people(7), branch="dev").raise_for_status()
    tag = {"tag": "x", "version": 3, "branch": "dev"}
    server.post(f"/v1/table/{table}/tags/create", tag).raise_for_status()
    for body, wanted in (({"source_version": 1}, [1]), ({"source_tag": "x"}, [1, 2, 3, 7])):
        clone(server, table, **body).raise_for_status()
        assert [row["id"] for row in read_back(server, f"{table}copy")] == wanted
        server.post(f"/v1/table/{table}copy/drop").raise_for_status()


def test_functions_stay_with_their_table(server: Server, table: str) -> None:
    column = virtual_column(b"\x80\x05N.", ["id"], {"a": "int32"}, "scalar")
    path = f"/v1/table/{table}/add_columns"
    server.post(path, {"new_columns": [new_column(column)]}).raise_for_status()
    made = clone(server, table).raise_for_status().json()
    assert lance.dataset(made["location"]).schema.field("a").metadata is None
    refused = server.post(f"/v1/table/{table}copy/backfill_column", {"column": "a"})
    assert refused.status_code == 400


def test_what_cannot_be_cloned_is_refused(server: Server, table: str) -> None:
    folders = set(server.lake.iterdir())
    assert code(clone(server, table, source_location="nothing")) == (404, 4)
    assert code(clone(server, table, source_location="/etc")) == (404, 4)
    assert code(clone(server, table, source_version=99)) == (404, 11)
    assert code(clone(server, table, source_tag="nothing")) == (404, 8)
    assert code(clone(server, table, source_version=1, source_tag="x")) == (400, 13)
    clone(server, table).raise_for_status()
    assert code(clone(server, table)) == (409, 5)
    until(lambda: len(set(server.lake.iterdir()) - folders) == 1, "a refused clone left files")


def test_a_clone_that_was_cut_short_is_removed(tmp_path: Path) -> None:
    dying = servers.start(tmp_path, environ={"PENSTOCK_CRASH_AT": "clone written"})
    send(dying, "/v1/table/t/create", people(1)).raise_for_status()
    with pytest.raises(httpx.HTTPError):
        clone(dying, "t")
    dying.process.wait(60)
    with servers.running(tmp_path) as server:
        until(lambda: not list(server.lake.glob("tcopy-*")), "the files of the clone stay")
        clone(server, "t").raise_for_status()


def test_rights_on_the_source_are_needed(tmp_path: Path) -> None:
    with guarded(tmp_path) as gate:
        admin = gate.admin()
        for ns in ("mine", "other"):
            admin.post(f"/v1/namespace/{ns}/create").raise_for_status()
        send(admin, "/v1/table/other$t/create", people(1)).raise_for_status()
        body = {"source_location": locate(admin, "other$t")}
        _check_rights(gate, body)


def _check_rights(gate: GuardedServer, body: dict[str, str]) -> None:
    gate.grant("ada", "owner", "namespace", "mine")
    ada = gate.as_(gate.key("ada"))
    hidden = ada.post("/v1/table/mine$copy/clone", body)
    assert code(hidden) == (404, 4)
    assert "no table of this catalog is at" in hidden.text
    gate.grant("ada", "reader", "namespace", "other")
    ada.post("/v1/table/mine$copy/clone", body).raise_for_status()
    assert code(ada.post("/v1/table/other$copy/clone", body)) == (403, 15)
