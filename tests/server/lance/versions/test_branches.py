"""Branches: list, create and delete."""

from typing import Any

import pytest

from tests.harness.clients.generated import Client as Generated
from tests.harness.clients.generated import models
from tests.harness.clients.pylance import Client, connect
from tests.harness.data.tables import Table, code, get_table
from tests.harness.fuzzing.races import one_winner, race
from tests.harness.processes.servers import Server

on_sqlite = pytest.mark.parametrize("server", ["sqlite"], indirect=True)


@pytest.fixture
def client(server: Server, namespace: str) -> Client:
    client = Client(connect(server), [namespace, "t"])
    client.write(1, 2, 3, mode="create")
    client.write(4)
    return client


@pytest.fixture
def table(server: Server, client: Client) -> Table:
    """A table with two versions of main: three rows, then four."""
    return get_table(server, "$".join(client.id))


def create(table: Table, name: str, **fields: Any) -> Any:
    return table.ask("branches/create", {"name": name} | fields)


def delete(table: Table, name: str) -> Any:
    return table.ask("branches/delete", {"name": name})


def count(client: Client, branch: str) -> int:
    return client.open().checkout_version((branch, None)).count_rows()


def add_column(table: Table, branch: str, name: str = "m") -> Any:
    column = {"name": name, "expression": "n"}
    return table.ask("add_columns", {"new_columns": [column], "branch": branch})


def test_a_branch_starts_at_the_newest_version(table: Table, client: Client) -> None:
    assert create(table, "dev").status_code == 200
    assert table.listed(branch="dev") == [2]
    assert count(client, "dev") == 4
    assert client.open().branches.list()["dev"]["parent_version"] == 2
    assert table.listed() == [1, 2]


def test_a_branch_starts_at_a_version(table: Table, client: Client) -> None:
    assert create(table, "old", from_version=1).status_code == 200
    assert (table.listed(branch="old"), count(client, "old")) == ([1], 3)


def test_a_branch_starts_from_a_branch(table: Table, client: Client) -> None:
    create(table, "dev", from_version=1)
    assert add_column(table, "dev").json() == {"version": 2}
    assert create(table, "dev/new", from_branch="dev").status_code == 200
    assert create(table, "dev-old", from_branch="dev", from_version=1).status_code == 200
    assert (table.listed(branch="dev/new"), table.listed(branch="dev-old")) == ([2], [1])
    newer = client.open().checkout_version(("dev/new", None))
    assert "m" in newer.schema.names
    assert client.open().branches.list()["dev/new"]["parent_branch"] == "dev"


@on_sqlite
def test_branches_are_listed_in_pages(table: Table, client: Client) -> None:
    assert table.ask("branches/list").json() == {"branches": {}}
    client.open().create_branch("theirs")
    create(table, "a/b", from_version=1)
    create(table, "b", from_branch="a/b")
    first = table.ask("branches/list", limit=2).json()
    assert list(first["branches"]) == ["a/b", "b"]
    assert first["branches"]["b"]["parentBranch"] == "a/b"
    assert first["branches"]["a/b"]["parentVersion"] == 1
    rest = table.ask("branches/list", limit=2, page_token=first["page_token"]).json()
    assert (list(rest["branches"]), rest.get("page_token")) == (["theirs"], None)


def test_the_published_client_reads_the_answers(table: Table, server: Server) -> None:
    generated = Generated(server.url)
    request = models.CreateTableBranchRequest(name="dev", from_version=1)
    transaction = generated.create_table_branch(table.id, request).transaction_id
    assert server.post(f"/v1/transaction/{transaction}/describe").status_code == 200
    assert generated.list_table_branches(table.id).branches["dev"].parent_version == 1
    request = models.DeleteTableBranchRequest(name="dev")
    transaction = generated.delete_table_branch(table.id, request).transaction_id
    known = server.post(f"/v1/transaction/{transaction}/describe").json()
    assert known["properties"]["kind"] == "DeleteTableBranch"


def test_a_deleted_branch_can_come_again_with_other_content(table: Table, client: Client) -> None:
    create(table, "dev", from_version=1)
    assert add_column(table, "dev", "first").json() == {"version": 2}
    stats = table.ask("stats", {"branch": "dev"}).json()
    assert delete(table, "dev").status_code == 200
    assert code(table.ask("version/list", branch="dev")) == (404, 22)
    assert code(table.ask("stats", {"branch": "dev"})) == (404, 22)
    assert not (table.location / "tree" / "dev").exists()
    assert create(table, "dev", from_version=2).status_code == 200
    assert table.listed(branch="dev") == [2]
    assert table.ask("stats", {"branch": "dev"}).json()["num_rows"] == 4 != stats["num_rows"]
    assert add_column(table, "dev", "second").json() == {"version": 3}
    names = client.open().checkout_version(("dev", None)).schema.names
    assert names == ["n", "vector", "second"]


def test_a_branch_below_another_keeps_its_files(table: Table, client: Client) -> None:
    create(table, "dev")
    add_column(table, "dev")
    create(table, "dev/sub")
    add_column(table, "dev/sub")
    assert delete(table, "dev").status_code == 200
    assert code(table.ask("version/list", branch="dev")) == (404, 22)
    assert client.open().checkout_version(("dev/sub", None)).to_table().num_rows == 4
    assert create(table, "dev").status_code == 200
    assert table.listed(branch="dev") == [2]


def test_a_branch_in_use_stays_and_says_by_what(table: Table, client: Client) -> None:
    create(table, "dev")
    create(table, "child", from_branch="dev")
    table.ask("tags/create", {"tag": "release", "version": 2, "branch": "dev"})
    answer = delete(table, "dev")
    assert code(answer) == (409, 14)
    assert "tag release" in answer.json()["error"]
    assert "branch child" in answer.json()["error"]
    assert count(client, "dev") == 4
    delete(table, "child")
    table.ask("tags/delete", {"tag": "release"})
    assert delete(table, "dev").status_code == 200
    assert client.open().branches.list() == {}


@on_sqlite
def test_what_a_crash_left_of_a_branch_can_be_deleted(table: Table) -> None:
    create(table, "a/b")
    (table.location / "_refs" / "branches" / "a%2Fb.json").unlink()
    assert table.ask("branches/list").json() == {"branches": {}}
    assert code(create(table, "a/b")) == (409, 23)
    assert delete(table, "a/b").status_code == 200
    assert create(table, "a/b", from_version=1).status_code == 200
    assert table.listed(branch="a/b") == [1]


@on_sqlite
@pytest.mark.parametrize(
    ("operation", "fields", "expected"),
    [
        ("create", {"name": "dev"}, (409, 23)),
        ("create", {"name": "dev", "from_version": 1}, (409, 23)),
        ("create", {"name": "new", "from_branch": "missing"}, (404, 22)),
        ("create", {"name": "new", "from_version": 99}, (404, 11)),
        ("create", {"name": "new", "from_branch": "dev", "from_version": 1}, (404, 11)),
        ("create", {"name": "new", "from_version": -1}, (400, 13)),
        ("create", {}, (400, 13)),
        ("delete", {"name": "missing"}, (404, 22)),
        ("delete", {"name": "main"}, (400, 13)),
        ("delete", {}, (400, 13)),
    ],
)
def test_errors_have_their_code(
    table: Table, operation: str, fields: dict[str, Any], expected: tuple[int, int]
) -> None:
    create(table, "dev")
    assert code(table.ask(f"branches/{operation}", fields)) == expected
    assert list(table.ask("branches/list").json()["branches"]) == ["dev"]


@on_sqlite
@pytest.mark.parametrize(
    "name",
    ["", "main", "..", "a//b", "/a", "a/", "a b", "ä", "a..b", "x.lock", "a/_versions", "a/data"],
)
def test_illegal_names_are_refused(table: Table, name: str) -> None:
    assert code(create(table, name)) == (400, 13)


def test_of_many_creators_one_wins(table: Table, client: Client) -> None:
    found = race(lambda number: create(table, "dev", from_version=1 + number % 2))
    assert found == one_winner((409, 23))
    assert count(client, "dev") in (3, 4)
    assert len(table.listed(branch="dev")) == 1


def test_a_table_without_data_has_no_branches(server: Server, namespace: str) -> None:
    server.post(f"/v1/table/{namespace}$empty/declare").raise_for_status()
    path = f"/v1/table/{namespace}$empty/branches"
    assert server.post(f"{path}/list").json() == {"branches": {}}
    assert code(server.post(f"{path}/create", {"name": "dev"})) == (404, 11)
    assert code(server.post(f"{path}/delete", {"name": "dev"})) == (404, 22)


@on_sqlite
@pytest.mark.parametrize("operation", ["list", "create", "delete"])
def test_a_missing_table_is_named(server: Server, namespace: str, operation: str) -> None:
    body = {"name": "dev"}
    assert code(server.post(f"/v1/table/{namespace}$gone/branches/{operation}", body)) == (404, 4)
    assert code(server.post(f"/v1/table/nowhere$gone/branches/{operation}", body)) == (404, 1)
