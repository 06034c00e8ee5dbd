"""Who may give and take back grants, by requests and by commands."""

from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from penstock.cli.main import penstock
from tests.harness.clients.idempotency_keys import new_key
from tests.harness.processes import servers
from tests.harness.processes.access import GuardedServer, person
from tests.harness.processes.servers import Server


def test_grants_are_given_by_owners_who_give_no_more_than_they_have(
    gate: GuardedServer, ns: str
) -> None:
    ann, bob = person(gate), person(gate)
    gate.grant(ann.name, "writer", "namespace", ns)
    wish = {"principal": bob.name, "role": "reader", "table": [ns, "a"]}
    assert ann.ask("grants/create", wish).json()["code"] == 15
    assert bob.ask("grants/create", wish).json()["code"] == 1
    gate.grant(ann.name, "owner", "namespace", ns)
    assert ann.ask("grants/create", wish).status_code == 200
    assert bob.sees(f"{ns}$a")
    others: list[dict[str, Any]] = [{"role": "functions"}, {"table": None, "catalog": True}]
    for more in others:
        assert ann.ask("grants/create", {**wish, **more}).json()["code"] == 15, more
    listed = ann.ask("grants/list", {"table": [ns, "a"]}).json()["grants"]
    assert {(g["principal"], g["role"]) for g in listed} >= {(bob.name, "reader")}
    own = bob.ask("grants/list").json()["grants"]
    assert [(g["principal"], g["role"], g["table"]) for g in own] == [
        (bob.name, "reader", [ns, "a"])
    ]
    assert bob.ask("grants/list", {"principal": ann.name}).json()["code"] == 15
    assert ann.ask("grants/revoke", wish).status_code == 200
    assert ann.ask("grants/revoke", wish).json()["code"] == 13
    assert not bob.sees(f"{ns}$a")


def test_a_slip_in_a_body_does_not_widen_what_a_grant_is_on(
    gate: GuardedServer, admin: Server, ns: str
) -> None:
    bob = person(gate)
    wish = {"principal": bob.name, "role": "reader"}
    slips: list[tuple[dict[str, Any], str]] = [
        ({"tabel": [ns, "a"]}, "tabel"),
        ({"table": [ns, "a"], "catalogue": True}, "catalogue"),
        ({}, "catalog"),
        ({"table": None}, "catalog"),
        ({"catalog": False}, "catalog"),
        ({"namespace": []}, "namespace is empty"),
        ({"table": []}, "table is empty"),
        ({"table": [ns, "a"], "view": [ns, "v"]}, "several"),
        ({"table": [ns, "a"], "catalog": True}, "several"),
    ]
    for verb in ("create", "revoke"):
        for slip, told in slips:
            answer = admin.post(f"/v1/grants/{verb}", {**wish, **slip})
            assert answer.status_code == 400, slip
            assert told in answer.text
    assert not bob.get("table")["tables"]
    for path in ("grants/list", "audit/list"):
        answer = admin.post(f"/v1/{path}", {"princpal": bob.name})
        assert (answer.status_code, "princpal" in answer.text) == (400, True)
    everything = {**wish, "catalog": True}
    admin.post("/v1/grants/create", everything).raise_for_status()
    assert bob.sees(f"{ns}$a")
    (listed,) = bob.ask("grants/list").json()["grants"]
    assert listed["catalog"]
    admin.post("/v1/grants/revoke", everything).raise_for_status()
    assert not bob.sees(f"{ns}$a")


@pytest.mark.parametrize("verb", ["create", "revoke", "list"])
def test_a_grant_on_a_view_that_is_not_there_or_hidden_is_not_found(
    gate: GuardedServer, ns: str, verb: str
) -> None:
    bob = person(gate)
    wish = {} if verb == "list" else {"principal": bob.name, "role": "reader"}
    for view in ("v", "w"):
        answer = bob.ask(f"grants/{verb}", {**wish, "view": [ns, view]})
        assert (answer.status_code, answer.json()["code"]) == (404, 13), answer.text
        assert f"view {ns}${view} does not exist" in answer.text


def test_a_grant_that_comes_again_under_its_key_changes_nothing(
    gate: GuardedServer, admin: Server, ns: str
) -> None:
    bob = person(gate)
    wish = {"principal": bob.name, "role": "reader", "namespace": [ns]}
    for verb, sees in (("create", True), ("revoke", False)):
        headers = {"Idempotency-Key": new_key()}
        answers = [
            admin.client.post(f"/v1/grants/{verb}", json=wish, headers=headers) for _ in range(3)
        ]
        assert {(a.status_code, a.text) for a in answers} == {(200, answers[0].text)}
        assert bob.sees(f"{ns}$a") == sees


def test_nobody_grants_at_a_server_that_asks_nobody_who_they_are(tmp_path: Path) -> None:
    wish = {"principal": "eve", "role": "owner", "catalog": True}
    with servers.running(tmp_path) as server:
        for verb in ("create", "revoke"):
            refused = server.post(f"/v1/grants/{verb}", wish)
            assert (refused.status_code, refused.json()["code"]) == (400, 13)
            assert "authentication is off" in refused.text
        assert server.post("/v1/grants/list").json() == {"grants": []}


def test_the_commands_give_list_and_take_back(tmp_path: Path) -> None:
    def run(*arguments: str) -> str:
        done = CliRunner().invoke(penstock, [*arguments, "--data", str(tmp_path)])
        return f"{done.output}{done.exception or ''}"

    assert run("token", "create", "root", "--role", "owner").startswith("pstk_")
    assert "group:eng is reader of the catalog" in run("grant", "group:eng", "reader")
    listed = run("grants")
    assert "group:eng" in listed
    assert "root" in listed
    assert "does not exist" in run("grant", "ann", "reader", "--namespace", "a")
    assert "role is 'god'" in run("grant", "ann", "god")
    assert "not reader" in run("revoke", "group:eng", "reader")
    assert "group:eng" not in run("grants", "--json")
