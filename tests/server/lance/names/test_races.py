"""Sixteen clients on names: exactly one wins, and nothing is left without its parent."""

import pytest

from tests.harness.data.manifests import commit_by_path
from tests.harness.data.tables import Table, code, declare, new_name
from tests.harness.fuzzing.races import CLIENTS, one_winner, race
from tests.harness.processes.servers import Server


def test_one_client_creates_a_namespace(server: Server, namespace: str) -> None:
    path = f"/v1/namespace/{namespace}$child/create"
    found = race(lambda n: server.post(path, {"properties": {"by": str(n)}}))
    assert found == one_winner((409, 2))


def test_one_client_declares_a_table(server: Server, namespace: str) -> None:
    found = race(lambda n: server.post(f"/v1/table/{namespace}$t/declare"))
    assert found == one_winner((409, 5))


def test_one_client_declares_at_a_location(server: Server, namespace: str) -> None:
    location = f"{new_name()}.lance"
    found = race(
        lambda n: server.post(f"/v1/table/{namespace}$t{n}/declare", {"location": location})
    )
    assert found == one_winner((409, 5))


def test_one_client_registers_a_table(server: Server, namespace: str) -> None:
    names = [f"{new_name()}.lance" for _ in range(CLIENTS)]
    for name in names:
        commit_by_path(server.lake / name, 1)
    found = race(lambda n: server.post(f"/v1/table/{namespace}$t/register", {"location": names[n]}))
    assert found == one_winner((409, 5))


def test_one_client_renames_to_a_name(server: Server, namespace: str) -> None:
    for number in range(CLIENTS):
        declare(server, f"{namespace}$t{number}")
    found = race(
        lambda n: server.post(f"/v1/table/{namespace}$t{n}/rename", {"new_table_name": "x"})
    )
    assert found == one_winner((409, 5))


def test_one_client_drops_a_table(server: Server, namespace: str) -> None:
    declare(server, f"{namespace}$t").commit(1)
    found = race(lambda n: server.post(f"/v1/table/{namespace}$t/drop"))
    assert found == one_winner((404, 4))


def test_one_client_renames_a_table(server: Server, namespace: str) -> None:
    declare(server, f"{namespace}$t").commit(1)
    path = f"/v1/table/{namespace}$t/rename"
    found = race(lambda n: server.post(path, {"new_table_name": f"x{n}"}))
    assert found == one_winner((404, 4))
    assert len(server.get(f"/v1/namespace/{namespace}/table/list").json()["tables"]) == 1


def test_one_client_deregisters_a_table(table: Table) -> None:
    table.commit(1)
    assert race(lambda n: table.ask("deregister")) == one_winner((404, 4))


@pytest.mark.parametrize("behavior", ["Restrict", "Cascade"])
def test_one_client_drops_a_namespace(server: Server, namespace: str, behavior: str) -> None:
    body = {"behavior": behavior}
    found = race(lambda n: server.post(f"/v1/namespace/{namespace}/drop", body))
    assert found == one_winner((404, 1))


def test_everybody_may_create_with_exist_ok(server: Server, namespace: str) -> None:
    path, body = f"/v1/namespace/{namespace}$x/create", {"mode": "ExistOk"}
    assert race(lambda n: server.post(path, body)) == {(200, 0): CLIENTS}


def test_everybody_may_overwrite(server: Server, namespace: str) -> None:
    path, body = f"/v1/namespace/{namespace}$x/create", {"mode": "Overwrite"}
    assert race(lambda n: server.post(path, body)) == {(200, 0): CLIENTS}


def test_one_client_sets_a_property_that_must_be_new(server: Server, namespace: str) -> None:
    id = server.post(f"/v1/namespace/{namespace}$x/create").json()["transaction_id"]
    action = {"setPropertyAction": {"key": "a", "value": "b", "mode": "Fail"}}
    found = race(lambda n: server.post(f"/v1/transaction/{id}/alter", {"actions": [action]}))
    assert found[200, 0] == 1


def test_a_drop_in_the_middle_of_commits_leaves_nothing(table: Table) -> None:
    table.commit(1)
    staged = [table.stage(2) for _ in range(CLIENTS)]
    found = race(lambda n: table.create(2, staged[n]) if n else table.ask("drop"))
    assert found.keys() <= {(200, 0), (409, 14), (404, 4), (400, 13)}
    assert code(table.ask("exists")) == (404, 4)
    assert not table.location.exists()


def compete(server: Server, rare: str, often: str) -> None:
    """Let a quarter of the clients send one request and the others another."""
    race(lambda number: server.post(often if number % 4 else rare))


def test_a_table_is_never_left_without_its_namespace(server: Server, namespace: str) -> None:
    for number in range(8):
        child = f"{namespace}$c{number}"
        server.post(f"/v1/namespace/{child}/create").raise_for_status()
        compete(server, f"/v1/namespace/{child}/drop", f"/v1/table/{child}$t/declare")
        exists = server.post(f"/v1/namespace/{child}/exists").status_code == 200
        assert exists or f"{child}$t" not in server.get("/v1/table").json()["tables"]


def test_a_namespace_is_never_left_without_its_parent(server: Server, namespace: str) -> None:
    for number in range(8):
        child = f"{namespace}$c{number}"
        server.post(f"/v1/namespace/{child}/create").raise_for_status()
        compete(server, f"/v1/namespace/{child}/drop", f"/v1/namespace/{child}$x/create")
        exists = server.post(f"/v1/namespace/{child}/exists").status_code == 200
        assert exists or server.post(f"/v1/namespace/{child}$x/exists").status_code == 404
