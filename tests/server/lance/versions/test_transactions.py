"""DescribeTransaction and AlterTransaction."""

from typing import Any

import httpx
import pytest

from tests.harness.data.tables import Table, code
from tests.harness.processes.servers import Server


@pytest.fixture
def transaction(server: Server, namespace: str) -> str:
    """The transaction of a namespace that was created."""
    answer = server.post(f"/v1/namespace/{namespace}$x/create")
    return str(answer.raise_for_status().json()["transaction_id"])


def describe(server: Server, id: str) -> dict[str, Any]:
    answer = server.post(f"/v1/transaction/{id}/describe")
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def alter(server: Server, id: str, *actions: Any) -> httpx.Response:
    return server.post(f"/v1/transaction/{id}/alter", {"actions": list(actions)})


def put(key: str, value: str, **more: str) -> dict[str, Any]:
    return {"setPropertyAction": {"key": key, "value": value} | more}


def unset(key: str, **more: str) -> dict[str, Any]:
    return {"unsetPropertyAction": {"key": key} | more}


def test_a_change_is_a_transaction_that_succeeded(
    server: Server, namespace: str, transaction: str
) -> None:
    found = describe(server, transaction)
    assert found["status"] == "SUCCEEDED"
    assert found["properties"]["kind"] == "CreateNamespace"
    assert found["properties"]["target"] == f"{namespace}$x"


def test_every_change_of_a_table_is_one(server: Server, table: Table) -> None:
    made = [
        table.create(1).json(),
        table.ask("version/delete", {"ranges": []}).json(),
        table.ask("rename", {"new_table_name": "u"}).json(),
        server.post(f"/v1/table/{table.parts[0]}$u/deregister").json(),
    ]
    kinds = [describe(server, m["transaction_id"])["properties"]["kind"] for m in made]
    assert kinds == ["CreateTableVersion", "DeleteTableVersions", "RenameTable", "DeregisterTable"]


def test_the_trace_of_a_request_is_kept(server: Server, namespace: str) -> None:
    headers = {"x-lance-ctx-trace_id": "trace-7"}
    answer = server.send(f"/v1/namespace/{namespace}$x/create", headers=headers)
    found = describe(server, answer.json()["transaction_id"])
    assert found["properties"]["trace_id"] == "trace-7"


def test_an_id_may_be_led_by_the_tables_id(server: Server, table: Table) -> None:
    transaction = table.create(1).json()["transaction_id"]
    assert describe(server, f"{table.id}${transaction}")["status"] == "SUCCEEDED"


def test_an_unknown_transaction_is_said(server: Server) -> None:
    assert code(server.post("/v1/transaction/none/describe")) == (404, 10)
    assert code(alter(server, "none", put("a", "b"))) == (404, 10)


def test_the_root_is_no_transaction(server: Server) -> None:
    assert code(server.post("/v1/transaction/$/describe")) == (400, 13)


def test_properties_are_set_and_unset(server: Server, transaction: str) -> None:
    answer = alter(server, transaction, put("a", "1"), put("b", "2"), put("a", "3")).json()
    assert (answer["properties"]["a"], answer["properties"]["b"]) == ("3", "2")
    alter(server, transaction, unset("a")).raise_for_status()
    assert "a" not in describe(server, transaction)["properties"]
    assert describe(server, transaction)["properties"]["b"] == "2"


@pytest.mark.parametrize(
    ("mode", "status", "value"),
    [
        ("Overwrite", 200, "new"),
        ("overwrite", 200, "new"),
        ("Skip", 200, "old"),
        ("SKIP", 200, "old"),
        ("Fail", None, "old"),
        ("fail", None, "old"),
    ],
)
def test_a_mode_decides_over_a_property_that_is_set(
    server: Server, transaction: str, mode: str, status: int | None, value: str
) -> None:
    alter(server, transaction, put("a", "old")).raise_for_status()
    answer = alter(server, transaction, put("a", "new", mode=mode))
    assert answer.status_code == status if status else answer.status_code in (400, 409)
    assert describe(server, transaction)["properties"]["a"] == value


@pytest.mark.parametrize(("mode", "works"), [("Skip", True), ("skip", True), ("Fail", False)])
def test_a_mode_decides_over_a_property_that_is_missing(
    server: Server, transaction: str, mode: str, works: bool
) -> None:
    assert alter(server, transaction, unset("none", mode=mode)).is_success is works
    assert alter(server, transaction, unset("none")).is_success


@pytest.mark.parametrize("position", [0, 1, 2])
def test_all_actions_or_none(server: Server, transaction: str, position: int) -> None:
    actions: list[Any] = [put("a", "1"), put("b", "2")]
    actions.insert(position, unset("none", mode="Fail"))
    assert alter(server, transaction, *actions).is_client_error
    assert not {"a", "b"} & describe(server, transaction)["properties"].keys()


@pytest.mark.parametrize("status", ["Canceled", "canceled", "RUNNING", "Failed", "queued"])
def test_a_finished_transaction_stays_finished(
    server: Server, transaction: str, status: str
) -> None:
    answer = alter(server, transaction, {"setStatusAction": {"status": status}})
    assert answer.json()["status"] == "SUCCEEDED"


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"actions": []},
        {"actions": [{}]},
        {"actions": [{"setStatusAction": {"status": "Done"}}]},
        {"actions": [put("a", "b") | unset("a")]},
        {"actions": [put("a", "b", mode="perhaps")]},
        {"actions": [{"setPropertyAction": {"key": "a", "value": 1}}]},
        {"actions": "x"},
    ],
)
def test_bad_actions_are_refused(server: Server, transaction: str, body: Any) -> None:
    assert code(server.post(f"/v1/transaction/{transaction}/alter", body)) == (400, 13)


def test_what_the_server_noted_itself_cannot_be_changed(server: Server, transaction: str) -> None:
    alter(server, transaction, put("kind", "other"), unset("target"))
    found = describe(server, transaction)["properties"]
    assert found["kind"] == "CreateNamespace"
    assert "target" in found
