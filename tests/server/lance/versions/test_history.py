"""What the versions of a table did, and how two of them differ."""

from typing import Any

import httpx
import pyarrow as pa
import pytest

from tests.harness.data.arrow import people, send
from tests.harness.data.tables import code
from tests.harness.processes.servers import Server


def ask(server: Server, table: str, what: str, **body: Any) -> httpx.Response:
    return server.post(f"/v1/table/{table}/version/{what}", body)


def history(server: Server, table: str, **body: Any) -> list[tuple[int, str, int]]:
    answer = ask(server, table, "history", **body)
    assert answer.status_code == 200, answer.text
    return [(v["version"], v["operation"], v["rows"]) for v in answer.json()["versions"]]


def compare(server: Server, table: str, then: int, now: int, **body: Any) -> dict[str, Any]:
    answer = ask(server, table, "compare", **{"from": then, "to": now}, **body)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


@pytest.fixture
def changed(server: Server, namespace: str) -> str:
    """A table that was written, appended to, updated, and that rows and columns were taken from."""
    name = f"{namespace}$t"
    send(server, f"/v1/table/{name}/create", people(1, 2, 3)).raise_for_status()
    send(server, f"/v1/table/{name}/insert", people(4, 5)).raise_for_status()
    change = {"predicate": "id = 1", "updates": [["name", "'new'"]]}
    server.post(f"/v1/table/{name}/update", change).raise_for_status()
    server.post(f"/v1/table/{name}/delete", {"predicate": "id = 2"}).raise_for_status()
    new = {"new_columns": [{"name": "twice", "expression": "id * 2"}]}
    server.post(f"/v1/table/{name}/add_columns", new).raise_for_status()
    alter = {"alterations": [{"path": "name", "rename": "called"}]}
    server.post(f"/v1/table/{name}/alter_columns", alter).raise_for_status()
    return name


def test_each_version_tells_what_it_did(server: Server, changed: str) -> None:
    told = history(server, changed)
    assert told[-5:] == [
        (5, "change_columns", 4),
        (4, "delete", 4),
        (3, "update", 5),
        (2, "append", 5),
        (1, "overwrite", 3),
    ]
    assert told[0][0] == len(told)
    first = ask(server, changed, "history").json()["versions"][-1]
    assert first["at"] > 1_600_000_000_000


def test_history_comes_in_pages(server: Server, changed: str) -> None:
    whole, found, token = history(server, changed), [], None
    while True:
        answer = ask(server, changed, "history", limit=2, page_token=token).json()
        found += [v["version"] for v in answer["versions"]]
        token = answer.get("page_token")
        if token is None:
            break
    assert found == [each[0] for each in whole]


def test_rows_that_differ_are_counted(server: Server, changed: str) -> None:
    assert compare(server, changed, 1, 4) == {
        "schema": {"added": [], "removed": [], "changed": []},
        "rows": {"inserted": 2, "updated": 1, "deleted": 1},
    }
    assert compare(server, changed, 4, 1)["rows"] == {"inserted": 1, "updated": 1, "deleted": 2}
    assert compare(server, changed, 2, 2)["rows"] == {"inserted": 0, "updated": 0, "deleted": 0}


def test_columns_that_differ_are_told(server: Server, changed: str) -> None:
    newest = history(server, changed)[0][0]
    told = compare(server, changed, 1, newest)
    assert told["schema"] == {
        "added": [{"name": "twice", "type": "int64"}],
        "removed": [],
        "changed": [{"name": "called", "type": "string", "old_name": "name"}],
    }
    assert told["rows"] == {"inserted": 2, "updated": 1, "deleted": 1}
    back = compare(server, changed, newest, 1)["schema"]
    assert back["removed"] == [{"name": "twice", "type": "int64"}]


def test_a_branch_has_a_history_of_its_own(server: Server, changed: str) -> None:
    branch = {"name": "dev", "from_version": 2}
    server.post(f"/v1/table/{changed}/branches/create", branch).raise_for_status()
    send(server, f"/v1/table/{changed}/insert", people(9), branch="dev").raise_for_status()
    told = history(server, changed, branch="dev")
    assert told[0][1:] == ("append", 6)
    assert compare(server, changed, told[-1][0], told[0][0], branch="dev")["rows"]["inserted"] == 1
    assert len(history(server, changed)) > len(told)


def test_versions_that_are_not_there_are_refused(server: Server, changed: str) -> None:
    assert code(ask(server, changed, "compare", **{"from": 1, "to": 99})) == (404, 11)
    for body in ({}, {"from": 1}, {"from": -1, "to": 1}, {"from": "a", "to": 1}):
        assert code(ask(server, changed, "compare", **body)) == (400, 13)
    assert code(ask(server, changed, "history", limit=0)) == (400, 13)
    assert code(ask(server, changed, "history", page_token="x")) == (400, 13)
    assert code(ask(server, changed, "history", branch="none"))[0] == 404
    assert code(ask(server, f"{changed}no", "history")) == (404, 4)


def test_a_table_without_data_has_no_history(server: Server, namespace: str) -> None:
    server.post(f"/v1/table/{namespace}$d/declare").raise_for_status()
    assert history(server, f"{namespace}$d") == []


def test_names_of_any_kind_are_compared(server: Server, namespace: str) -> None:
    name = f"{namespace}$odd"
    rows = pa.table({"id": [1, 2], "<c d>": [1.5, 2.5], "É'": ["x", "y"]})
    send(server, f"/v1/table/{name}/create", rows).raise_for_status()
    change = {"predicate": "id = 1", "updates": [["id", "7"]]}
    server.post(f"/v1/table/{name}/update", change).raise_for_status()
    assert compare(server, name, 1, 2)["rows"] == {"inserted": 0, "updated": 1, "deleted": 0}
