"""RestoreTable: an old version becomes the newest of its branch again."""

from typing import Any

import pytest

from tests.harness.clients.generated import Client as Generated
from tests.harness.clients.generated import models
from tests.harness.clients.pylance import Client, make_branched
from tests.harness.data.tables import Table, code, get_table
from tests.harness.processes.servers import Server

on_sqlite = pytest.mark.parametrize("server", ["sqlite"], indirect=True)


@pytest.fixture
def client(server: Server, namespace: str) -> Client:
    return make_branched(server, namespace)


@pytest.fixture
def table(server: Server, client: Client) -> Table:
    return get_table(server, "$".join(client.id))


def numbers(client: Client, branch: str) -> list[int]:
    dataset = client.open().checkout_version((branch, None))
    return sorted(dataset.to_table()["n"].to_pylist())


def test_the_rows_of_an_old_version_are_back(table: Table, client: Client) -> None:
    answer = table.ask("restore", {"version": 1})
    assert answer.status_code == 200, answer.text
    assert client.numbers() == [1, 2, 3]
    assert table.listed() == [1, 2, 3]
    assert table.listed(branch="dev") == [2, 3]


def test_a_branch_is_restored_alone(table: Table, client: Client) -> None:
    assert numbers(client, "dev") == [2, 3, 4]
    assert table.ask("restore", {"version": 2, "branch": "dev"}).status_code == 200
    assert numbers(client, "dev") == [1, 2, 3, 4]
    assert table.listed(branch="dev") == [2, 3, 4]
    assert table.listed() == [1, 2]


def test_the_published_client_reads_the_answer(table: Table, server: Server) -> None:
    request = models.RestoreTableRequest(version=1)
    transaction = Generated(server.url).restore_table(table.id, request).transaction_id
    known = server.post(f"/v1/transaction/{transaction}/describe").json()
    assert known["status"] == "SUCCEEDED"


@on_sqlite
@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ({"version": 99}, (404, 11)),
        ({"version": 0}, (404, 11)),
        ({"version": 3}, (404, 11)),
        ({"version": 1, "branch": "dev"}, (404, 11)),
        ({"version": 1, "branch": "missing"}, (404, 22)),
        ({"version": 1, "branch": "no such"}, (400, 13)),
        ({"version": -1}, (400, 13)),
        ({"version": "1"}, (400, 13)),
        ({}, (400, 13)),
    ],
)
def test_errors_have_their_code(
    table: Table, body: dict[str, Any], expected: tuple[int, int]
) -> None:
    assert code(table.ask("restore", body)) == expected
    assert table.listed() == [1, 2]


@on_sqlite
def test_a_missing_table_is_named(server: Server, namespace: str) -> None:
    body = {"version": 1}
    assert code(server.post(f"/v1/table/{namespace}$gone/restore", body)) == (404, 4)
    assert code(server.post("/v1/table/nowhere$gone/restore", body)) == (404, 1)
