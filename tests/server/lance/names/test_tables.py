"""DeclareTable, TableExists, DropTable and DeregisterTable."""

from pathlib import Path
from typing import Any

import pytest

from tests.harness.data.tables import Table, code, declare, new_name
from tests.harness.processes.servers import Server


def test_a_declared_table_gets_a_place_of_its_own_in_the_lake(
    server: Server, namespace: str
) -> None:
    body = {"properties": {"a": "b"}}
    answer = server.post(f"/v1/table/{namespace}$t/declare", body).json()
    assert Path(answer["location"]).is_relative_to(server.lake.resolve())
    assert answer["properties"] == {"a": "b"}
    assert answer["managed_versioning"] is True
    assert answer["transaction_id"]
    described = server.post(f"/v1/table/{namespace}$t/describe").json()
    assert described["location"] == answer["location"]
    assert described["properties"] == {"a": "b"}


def test_no_two_tables_share_a_place(server: Server, namespace: str) -> None:
    names = ["a b", "a_b", "a/b", "A_B", "日本", "...", "x" * 255]
    places = {declare(server, f"{namespace}${name.replace('/', '%2F')}").location for name in names}
    assert len(places) == len(names)


def test_a_name_never_becomes_a_path_outside_the_lake(server: Server, namespace: str) -> None:
    table = declare(server, f"{namespace}$%2Fetc%2Fpasswd")
    assert table.location.parent == server.lake.resolve()


@pytest.mark.parametrize("name", ["%2E%2E%2Fx", "a%2F%2E%2E%2F%2E%2E%2Fb"])
def test_a_name_with_a_step_to_another_path_is_refused(
    server: Server, namespace: str, name: str
) -> None:
    answer = server.post(f"/v1/table/{namespace}${name}/declare")
    assert (answer.status_code, answer.json()["code"]) == (400, 13)


def test_a_name_is_given_once(table: Table) -> None:
    assert code(table.ask("declare")) == (409, 5)


def test_a_table_and_a_namespace_may_have_the_same_name(server: Server, table: Table) -> None:
    server.post(f"/v1/namespace/{table.id}/create").raise_for_status()
    assert table.ask("exists").status_code == 200


def test_a_missing_namespace_is_said(server: Server) -> None:
    for operation in ("declare", "exists", "drop", "deregister", "describe"):
        assert code(server.post(f"/v1/table/no$t/{operation}")) == (404, 1)


def test_a_missing_table_is_said(server: Server, namespace: str) -> None:
    for operation in ("exists", "drop", "deregister", "describe"):
        assert code(server.post(f"/v1/table/{namespace}$no/{operation}")) == (404, 4)


def test_the_root_is_no_table(server: Server) -> None:
    for operation in ("declare", "exists", "drop", "deregister", "describe", "version/list"):
        assert code(server.post(f"/v1/table/$/{operation}")) == (400, 13)


def test_a_table_may_lie_in_the_root(server: Server) -> None:
    name = new_name()
    table = declare(server, name)
    table.commit(1)
    assert name in server.get("/v1/namespace/$/table/list").json()["tables"]
    table.ask("drop").raise_for_status()
    assert name not in server.get("/v1/namespace/$/table/list").json()["tables"]


@pytest.mark.parametrize("form", ["{name}", "{lake}/{name}", "file://{lake}/{name}", "./{name}/"])
def test_a_location_may_be_chosen(server: Server, namespace: str, form: str) -> None:
    name = f"{new_name()}.lance"
    wanted = form.format(name=name, lake=server.lake.resolve())
    table = declare(server, f"{namespace}$t", location=wanted)
    assert table.location == server.lake.resolve() / name
    table.commit(1)


@pytest.mark.parametrize(
    "location", ["/etc/x", "../x", "a/../../x", "s3://bucket/x", "http://h/x", "", "a\x00b", "."]
)
def test_a_location_outside_the_lake_is_refused(
    server: Server, namespace: str, location: str
) -> None:
    body = {"location": location}
    assert code(server.post(f"/v1/table/{namespace}$t/declare", body)) == (400, 13)
    assert server.post(f"/v1/table/{namespace}$t/exists").status_code == 404


def test_locations_do_not_overlap(server: Server, namespace: str) -> None:
    place = new_name()
    declare(server, f"{namespace}$t", location=f"{place}/middle")
    for taken in (f"{place}/middle", place, f"{place}/middle/inner", f"{place}/middle/"):
        body = {"location": taken}
        assert code(server.post(f"/v1/table/{namespace}$u/declare", body)) == (409, 5)
    declare(server, f"{namespace}$u", location=f"{place}/middle2")


@pytest.mark.parametrize("body", [{"location": 1}, {"properties": {"a": 1}}, {"properties": []}])
def test_a_bad_body_is_refused(server: Server, namespace: str, body: dict[str, Any]) -> None:
    assert code(server.post(f"/v1/table/{namespace}$t/declare", body)) == (400, 13)


def test_exists_answers_with_an_empty_body(table: Table) -> None:
    answer = table.ask("exists")
    assert (answer.status_code, answer.content) == (200, b"")


def test_exists_can_ask_for_a_version(table: Table) -> None:
    table.commit(1)
    assert table.ask("exists", {"version": 1}).status_code == 200
    assert code(table.ask("exists", {"version": 2})) == (404, 11)


@pytest.mark.parametrize("body", [None, {}, {"anything": True}])
def test_drop_removes_the_table_and_its_files(table: Table, body: Any) -> None:
    table.commit(1, 2)
    (table.location / "data").mkdir()
    (table.location / "data" / "x.lance").write_bytes(b"x")
    answer = table.ask("drop", body).json()
    assert answer["id"] == table.parts
    assert answer["location"] == str(table.location)
    assert answer["transaction_id"]
    assert code(table.ask("exists")) == (404, 4)
    assert not table.location.exists()


def test_drop_works_when_nothing_was_ever_written(table: Table) -> None:
    table.ask("drop").raise_for_status()
    assert code(table.ask("drop")) == (404, 4)


def test_a_dropped_name_starts_anew(table: Table) -> None:
    table.commit(1, 2)
    table.ask("drop").raise_for_status()
    again = declare(table.server, table.id)
    assert again.listed() == []
    again.commit(1)


def test_drop_does_not_follow_links(table: Table, tmp_path: Path) -> None:
    table.commit(1)
    (tmp_path / "precious").write_bytes(b"x")
    (table.location / "link").symlink_to(tmp_path)
    table.ask("drop").raise_for_status()
    assert (tmp_path / "precious").exists()
    assert not table.location.exists()


def test_deregister_keeps_the_files(table: Table) -> None:
    table.commit(1)
    answer = table.ask("deregister").json()
    assert (answer["id"], answer["location"]) == (table.parts, str(table.location))
    assert code(table.ask("exists")) == (404, 4)
    assert table.file(1).exists()


def test_a_deregistered_table_can_come_back(table: Table) -> None:
    table.commit(1, 2)
    table.ask("deregister").raise_for_status()
    table.ask("register", {"location": str(table.location)}).raise_for_status()
    assert table.listed() == [1, 2]
