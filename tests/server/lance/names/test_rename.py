"""RenameTable, within a namespace and across namespaces."""

from typing import Any

import pytest

from tests.harness.data.tables import Table, code, declare
from tests.harness.processes.servers import Server


@pytest.fixture
def other(server: Server, namespace: str) -> str:
    """A second namespace."""
    server.post(f"/v1/namespace/{namespace}$other/create").raise_for_status()
    return f"{namespace}$other"


def test_a_table_keeps_everything_but_its_name(server: Server, namespace: str) -> None:
    table = declare(server, f"{namespace}$old", properties={"a": "b"})
    table.commit(1, 2)
    answer = table.ask("rename", {"new_table_name": "new"}).json()
    assert answer["transaction_id"]
    assert code(table.ask("exists")) == (404, 4)
    renamed = Table(server, f"{namespace}$new", table.location)
    described = renamed.ask("describe").json()
    assert described["location"] == str(table.location)
    assert described["properties"] == {"a": "b"}
    assert described["managed_versioning"] is True
    assert renamed.listed() == [1, 2]


def test_commits_go_on_under_the_new_name(table: Table) -> None:
    table.commit(1)
    table.ask("rename", {"new_table_name": "new"}).raise_for_status()
    renamed = Table(table.server, f"{table.parts[0]}$new", table.location)
    renamed.commit(2)
    assert renamed.listed() == [1, 2]
    assert code(table.create(3)) == (404, 4)


def test_a_table_moves_to_another_namespace(server: Server, table: Table, other: str) -> None:
    table.commit(1)
    body = {"new_table_name": "moved", "new_namespace_id": other.split("$")}
    table.ask("rename", body).raise_for_status()
    assert code(table.ask("exists")) == (404, 4)
    assert Table(server, f"{other}$moved", table.location).listed() == [1]
    namespace = table.parts[0]
    assert server.get(f"/v1/namespace/{namespace}/table/list").json()["tables"] == []
    assert server.get(f"/v1/namespace/{other}/table/list").json()["tables"] == ["moved"]


def test_a_table_moves_to_the_root_and_back(server: Server, table: Table) -> None:
    name = f"root-{table.parts[0]}"
    table.ask("rename", {"new_table_name": name, "new_namespace_id": []}).raise_for_status()
    assert server.post(f"/v1/table/{name}/exists").status_code == 200
    back = {"new_table_name": "t", "new_namespace_id": table.parts[:1]}
    server.post(f"/v1/table/{name}/rename", back).raise_for_status()
    assert table.ask("exists").status_code == 200


def test_the_old_name_is_free_again(table: Table) -> None:
    table.commit(1)
    table.ask("rename", {"new_table_name": "new"}).raise_for_status()
    again = declare(table.server, table.id)
    assert again.location != table.location
    assert again.listed() == []


def test_a_taken_name_is_refused(table: Table, other: str) -> None:
    declare(table.server, f"{table.parts[0]}$taken")
    declare(table.server, f"{other}$t")
    assert code(table.ask("rename", {"new_table_name": "taken"})) == (409, 5)
    body = {"new_table_name": "t", "new_namespace_id": other.split("$")}
    assert code(table.ask("rename", body)) == (409, 5)
    assert table.ask("exists").status_code == 200


def test_its_own_name_is_taken_too(table: Table) -> None:
    assert table.ask("rename", {"new_table_name": "t"}).status_code in (200, 409)
    assert table.ask("exists").status_code == 200


def test_missing_tables_and_namespaces_are_said(server: Server, table: Table) -> None:
    body: dict[str, Any] = {"new_table_name": "x"}
    assert code(server.post(f"/v1/table/{table.parts[0]}$no/rename", body)) == (404, 4)
    assert code(server.post("/v1/table/no$t/rename", body)) == (404, 1)
    assert code(table.ask("rename", body | {"new_namespace_id": ["no"]})) == (404, 1)
    assert table.ask("exists").status_code == 200


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"new_table_name": ""},
        {"new_table_name": "."},
        {"new_table_name": ".."},
        {"new_table_name": "a\x1fb"},
        {"new_table_name": "x" * 256},
        {"new_table_name": None},
        {"new_table_name": "x", "new_namespace_id": [""]},
        {"new_table_name": "x", "new_namespace_id": [".."]},
        {"new_table_name": "x", "new_namespace_id": "ns"},
    ],
)
def test_a_bad_name_is_refused(table: Table, body: dict[str, Any]) -> None:
    assert code(table.ask("rename", body)) == (400, 13)


def test_a_dropped_namespace_spares_the_table_that_moved_out(
    server: Server, table: Table, other: str
) -> None:
    inner = declare(server, f"{other}$inner")
    inner.commit(1)
    body = {"new_table_name": "out", "new_namespace_id": table.parts[:1]}
    inner.ask("rename", body).raise_for_status()
    server.post(f"/v1/namespace/{other}/drop", {"behavior": "Cascade"}).raise_for_status()
    assert inner.file(1).exists()
    assert Table(server, f"{table.parts[0]}$out", inner.location).listed() == [1]
