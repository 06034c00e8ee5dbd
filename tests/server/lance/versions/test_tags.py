"""Tags: list, version, create, update and delete."""

from typing import Any

import pytest

from tests.harness.clients.generated import Client as Generated
from tests.harness.clients.generated import models
from tests.harness.clients.pylance import Client, make_branched
from tests.harness.data.tables import Table, code, get_table
from tests.harness.fuzzing.races import one_winner, race
from tests.harness.processes.servers import Server

on_sqlite = pytest.mark.parametrize("server", ["sqlite"], indirect=True)


@pytest.fixture
def client(server: Server, namespace: str) -> Client:
    return make_branched(server, namespace)


@pytest.fixture
def table(server: Server, client: Client) -> Table:
    return get_table(server, "$".join(client.id))


def create(table: Table, tag: str, version: int = 1, **fields: Any) -> Any:
    return table.ask("tags/create", {"tag": tag, "version": version} | fields)


def version_of(table: Table, tag: str) -> Any:
    return table.ask("tags/version", {"tag": tag}).json()


def test_a_tag_names_a_version_for_every_client(table: Table, client: Client) -> None:
    answer = create(table, "one")
    assert answer.status_code == 200, answer.text
    assert version_of(table, "one") == {"version": 1}
    found = client.open().tags.list()["one"]
    size = table.file(1).stat().st_size
    assert (found["version"], found["branch"], found["manifest_size"]) == (1, None, size)
    assert client.open(version="one").count_rows() == 3
    assert table.listed() == [1, 2]


@on_sqlite
def test_a_tag_of_pylance_is_seen(table: Table, client: Client) -> None:
    client.open().tags.create("theirs", ("dev", 3))
    assert version_of(table, "theirs") == {"version": 3, "branch": "dev"}
    described = table.ask("describe", {"tag": "theirs"}).json()
    assert described["version"] == 3


def test_a_tag_of_a_branch_names_its_version(table: Table, client: Client) -> None:
    assert create(table, "t", 3, branch="dev").status_code == 200
    assert version_of(table, "t") == {"version": 3, "branch": "dev"}
    assert client.open(version="t").count_rows() == 3
    assert code(create(table, "u", 3)) == (404, 11)


def test_an_update_moves_the_tag(table: Table, client: Client) -> None:
    create(table, "t")
    body = {"tag": "t", "version": 3, "branch": "dev"}
    assert table.ask("tags/update", body).status_code == 200
    assert version_of(table, "t") == {"version": 3, "branch": "dev"}
    assert table.ask("tags/update", {"tag": "t", "version": 2}).status_code == 200
    assert version_of(table, "t") == {"version": 2}
    assert client.open(version="t").count_rows() == 4


def test_a_deleted_tag_is_gone(table: Table, client: Client) -> None:
    create(table, "t")
    assert table.ask("tags/delete", {"tag": "t"}).status_code == 200
    assert code(table.ask("tags/version", {"tag": "t"})) == (404, 8)
    assert client.open().tags.list() == {}
    assert create(table, "t", 2).status_code == 200


def test_tags_are_listed_in_pages(table: Table) -> None:
    assert table.ask("tags/list").json() == {"tags": {}}
    for tag in ("b", "a", "c.1"):
        create(table, tag)
    create(table, "d", 3, branch="dev")
    first = table.ask("tags/list", limit=3).json()
    assert list(first["tags"]) == ["a", "b", "c.1"]
    rest = table.ask("tags/list", limit=3, page_token=first["page_token"]).json()
    assert rest.keys() == {"tags"}
    assert rest["tags"]["d"]["branch"] == "dev"
    assert code(table.ask("tags/list", page_token="no")) == (400, 13)


def test_the_published_client_reads_the_answers(table: Table, server: Server) -> None:
    generated = Generated(server.url)
    request = models.CreateTableTagRequest(tag="t", version=1)
    transaction = generated.create_table_tag(table.id, request).transaction_id
    known = server.post(f"/v1/transaction/{transaction}/describe").json()
    assert known["properties"]["kind"] == "CreateTableTag"
    assert generated.list_table_tags(table.id).tags["t"].version == 1
    request = models.GetTableTagVersionRequest(tag="t")
    assert generated.get_table_tag_version(table.id, request).version == 1
    request = models.UpdateTableTagRequest(tag="t", version=3, branch="dev")
    assert generated.update_table_tag(table.id, request).transaction_id
    request = models.DeleteTableTagRequest(tag="t")
    assert generated.delete_table_tag(table.id, request).transaction_id


@on_sqlite
@pytest.mark.parametrize(
    ("operation", "fields", "expected"),
    [
        ("create", {"tag": "t"}, (409, 9)),
        ("create", {"tag": "new", "version": 99}, (404, 11)),
        ("create", {"tag": "new", "branch": "missing"}, (404, 22)),
        ("create", {"tag": "new", "version": -1}, (400, 13)),
        ("create", {"tag": "new", "version": None}, (400, 13)),
        ("update", {"tag": "missing"}, (404, 8)),
        ("update", {"tag": "t", "version": 99}, (404, 11)),
        ("update", {"tag": "t", "branch": "missing"}, (404, 22)),
        ("delete", {"tag": "missing"}, (404, 8)),
        ("version", {"tag": "missing"}, (404, 8)),
        ("version", {"tag": None}, (400, 13)),
    ],
)
def test_errors_have_their_code(
    table: Table, operation: str, fields: dict[str, Any], expected: tuple[int, int]
) -> None:
    create(table, "t")
    assert code(table.ask(f"tags/{operation}", {"version": 1} | fields)) == expected
    assert version_of(table, "t") == {"version": 1}


@on_sqlite
@pytest.mark.parametrize(
    "name", ["", ".", "..", "../x", "a/b", "a b", "ä", ".a", "a.", "a..b", "a.lock", "x" * 101]
)
def test_illegal_names_are_refused(table: Table, name: str) -> None:
    assert code(create(table, name)) == (400, 13)


def test_of_many_creators_one_wins(table: Table) -> None:
    found = race(lambda number: create(table, "t", 1 + number % 2))
    assert found == one_winner((409, 9))


@on_sqlite
@pytest.mark.parametrize("operation", ["list", "version", "create", "update", "delete"])
def test_a_missing_table_is_named(server: Server, namespace: str, operation: str) -> None:
    body = {"tag": "t", "version": 1}
    assert code(server.post(f"/v1/table/{namespace}$gone/tags/{operation}", body)) == (404, 4)
    assert code(server.post(f"/v1/table/nowhere$gone/tags/{operation}", body)) == (404, 1)
