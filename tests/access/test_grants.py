"""Grants: on tables and groups, in listings, after renames and drops, and who may give them."""

import threading
import uuid
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest
from click.testing import CliRunner

from penstock.catalog import grants
from penstock.cli.main import penstock
from penstock.model.rights import READ, Need
from tests.harness import servers
from tests.harness import view_requests as views
from tests.harness.access import Guarded, Issuer, Person, person
from tests.harness.arrow import people, send
from tests.harness.keys import new_key
from tests.harness.servers import Server


@pytest.fixture
def admin(gate: Guarded) -> Server:
    return gate.admin()


@pytest.fixture
def ns(admin: Server) -> str:
    """A namespace with the tables a, b and c, the view v, and an empty namespace below."""
    name = f"n{uuid.uuid4().hex[:8]}"
    admin.post(f"/v1/namespace/{name}/create").raise_for_status()
    admin.post(f"/v1/namespace/{name}$below/create").raise_for_status()
    for table in "abc":
        admin.post(f"/v1/table/{name}${table}/declare").raise_for_status()
    views.create(name).send(admin).raise_for_status()
    return name


def test_a_grant_on_a_table_shows_that_table_and_the_way_to_it(gate: Guarded, ns: str) -> None:
    ann = person(gate)
    gate.grant(ann.name, "reader", "table", ns, "b")
    assert ann.get("namespace/$/list")["namespaces"] == [ns]
    assert ann.get(f"namespace/{ns}/table/list")["tables"] == ["b"]
    assert ann.get(f"namespace/{ns}/table/list", include_declared="false")["tables"] == []
    assert ann.get("table")["tables"] == [f"{ns}$b"]
    assert ann.get(f"namespace/{ns}/list")["namespaces"] == []
    assert (ann.sees(f"{ns}$b"), ann.sees(f"{ns}$a")) == (True, False)
    assert ann.ask(f"namespace/{ns}/exists").status_code == 200
    # The namespace's properties are not the table's.
    assert ann.ask(f"namespace/{ns}/describe").json()["code"] == 15
    missing, hidden = (ann.ask(f"table/{ns}${t}/describe").json() for t in ("zz", "a"))
    assert (hidden["code"], missing["code"]) == (4, 4)
    assert hidden["error"].replace("$a", "$zz") == missing["error"]
    listed = ann.server.get(f"/iceberg/v1/namespaces/{ns}/views").json()
    assert listed["identifiers"] == []


def test_a_grant_on_a_view_shows_that_view_alone(gate: Guarded, ns: str) -> None:
    ann = person(gate)
    gate.grant(ann.name, "reader", "view", ns, "v")
    path = f"/iceberg/v1/namespaces/{ns}/views"
    assert [each["name"] for each in ann.server.get(path).json()["identifiers"]] == ["v"]
    assert ann.server.get(f"{path}/v").status_code == 200
    assert ann.server.client.delete(f"{path}/v").status_code == 403
    assert ann.get(f"namespace/{ns}/table/list")["tables"] == []


def test_pages_of_a_listing_are_full_whatever_is_left_out(gate: Guarded, admin: Server) -> None:
    ns = f"n{uuid.uuid4().hex[:8]}"
    admin.post(f"/v1/namespace/{ns}/create").raise_for_status()
    ann = person(gate)
    for number in range(12):
        admin.post(f"/v1/table/{ns}$t{number:02}/declare").raise_for_status()
        if number % 2:
            gate.grant(ann.name, "reader", "table", ns, f"t{number:02}")
    for path in (f"namespace/{ns}/table/list", "table"):
        seen, token = [], ""
        while True:
            page = ann.get(path, limit=2, page_token=token)
            assert len(page["tables"]) <= 2
            seen += page["tables"]
            if not (token := page.get("page_token", "")):
                break
            assert len(page["tables"]) == 2
        assert [name[-2:] for name in seen] == ["01", "03", "05", "07", "09", "11"]


def test_a_grant_on_a_namespace_counts_for_all_below_it_and_nothing_beside(
    gate: Guarded, admin: Server, ns: str
) -> None:
    ann = person(gate)
    for name in (f"{ns}x", f"{ns}-"):
        admin.post(f"/v1/namespace/{name}/create").raise_for_status()
        admin.post(f"/v1/table/{name}$t/declare").raise_for_status()
    admin.post(f"/v1/table/{ns}$below$deep/declare").raise_for_status()
    gate.grant(ann.name, "reader", "namespace", ns)
    assert ann.sees(f"{ns}$below$deep")
    assert not ann.sees(f"{ns}x$t")
    assert not ann.sees(f"{ns}-$t")
    assert ann.get("namespace/$/list")["namespaces"] == [ns]
    tables = [f"{ns}${name}" for name in ("a", "b", "below$deep", "c")]
    assert sorted(ann.get("table")["tables"]) == tables


def test_a_revoked_grant_stops_at_once(gate: Guarded, ns: str) -> None:
    ann = person(gate)
    for _ in range(3):
        gate.grant(ann.name, "reader", "table", ns, "a")
        assert ann.sees(f"{ns}$a")
        gate.ungrant(ann.name, "reader", "table", ns, "a")
        assert not ann.sees(f"{ns}$a")


def test_grants_follow_a_rename_and_end_with_a_drop(gate: Guarded, admin: Server, ns: str) -> None:
    ann = person(gate)
    gate.grant(ann.name, "reader", "table", ns, "a")
    assert ann.sees(f"{ns}$a")
    admin.post(f"/v1/table/{ns}$a/rename", {"new_table_name": "z"}).raise_for_status()
    assert (ann.sees(f"{ns}$a"), ann.sees(f"{ns}$z")) == (False, True)
    admin.post(f"/v1/table/{ns}$z/drop").raise_for_status()
    admin.post(f"/v1/table/{ns}$z/declare").raise_for_status()
    assert not ann.sees(f"{ns}$z")
    gate.grant(ann.name, "writer", "namespace", ns, "below")
    assert ann.ask(f"namespace/{ns}$below/describe").status_code == 200
    admin.post(f"/v1/namespace/{ns}/drop", {"behavior": "Cascade"}).raise_for_status()
    admin.post(f"/v1/namespace/{ns}/create").raise_for_status()
    admin.post(f"/v1/namespace/{ns}$below/create").raise_for_status()
    assert ann.ask(f"namespace/{ns}$below/describe").status_code == 404


def test_members_of_a_group_have_its_grants(gate: Guarded, issuer: Issuer, ns: str) -> None:
    group = f"g{uuid.uuid4().hex[:8]}"
    ann, bob = person(gate, groups=(group,)), person(gate)
    gate.grant(f"group:{group}", "reader", "namespace", ns)
    assert (ann.sees(f"{ns}$a"), bob.sees(f"{ns}$a")) == (True, False)
    path = f"/v1/table/{ns}$a/describe"
    assert gate.ask(path, issuer.sign(groups=["other", group])).status_code == 200
    assert gate.ask(path, issuer.sign(groups=[])).status_code == 404
    # Nobody becomes a group, or somebody else, by a name.
    assert gate.ask(path, issuer.sign(sub=f"group:{group}")).status_code == 404
    gate.grant("oidc:ann", "reader", "table", ns, "b")
    assert gate.ask(f"/v1/table/{ns}$b/describe", issuer.sign()).status_code == 200
    assert gate.ask(f"/v1/table/{ns}$b/describe", gate.key("ann")).status_code == 404


def test_who_makes_something_owns_it(gate: Guarded, ns: str) -> None:
    ann = person(gate)
    gate.grant(ann.name, "owner", "namespace", ns)
    ann.ask(f"table/{ns}$mine/declare").raise_for_status()
    send(ann.server, f"/v1/table/{ns}$rows/create", people(1)).raise_for_status()
    ann.ask(f"namespace/{ns}$sub/create").raise_for_status()
    views.create(ns, "w").send(ann.server).raise_for_status()
    gate.ungrant(ann.name, "owner", "namespace", ns)
    assert [ann.sees(f"{ns}${t}") for t in ("mine", "rows", "a")] == [True, True, False]
    assert ann.ask(f"table/{ns}$sub$t/declare").status_code == 200
    assert ann.server.get(f"/iceberg/v1/namespaces/{ns}/views/w").status_code == 200
    assert ann.ask(f"table/{ns}$mine/drop").status_code == 200
    assert ann.ask(f"table/{ns}$new/declare").status_code == 403


def test_a_rename_needs_both_ends(gate: Guarded, admin: Server, ns: str) -> None:
    ann, other = person(gate), f"n{uuid.uuid4().hex[:8]}"
    admin.post(f"/v1/namespace/{other}/create").raise_for_status()
    gate.grant(ann.name, "owner", "namespace", ns)
    body = {"new_table_name": "a", "new_namespace_id": [other]}
    assert ann.ask(f"table/{ns}$a/rename", body).json()["code"] == 1
    view = {
        "source": {"namespace": [ns], "name": "v"},
        "destination": {"namespace": [other], "name": "v"},
    }
    assert ann.server.post("/iceberg/v1/views/rename", view).status_code == 404
    gate.grant(ann.name, "reader", "namespace", other)
    assert ann.ask(f"table/{ns}$a/rename", body).json()["code"] == 15
    assert ann.server.post("/iceberg/v1/views/rename", view).status_code == 403
    gate.grant(ann.name, "owner", "namespace", other)
    assert ann.ask(f"table/{ns}$a/rename", body).status_code == 200
    assert ann.server.post("/iceberg/v1/views/rename", view).status_code == 204


def test_a_batch_is_refused_for_one_table_that_is_not_the_callers(
    gate: Guarded, admin: Server, ns: str
) -> None:
    ann = person(gate)
    gate.grant(ann.name, "owner", "table", ns, "a")
    gate.grant(ann.name, "writer", "table", ns, "b")
    drop = [{"deregister_table": {"id": [ns, "a"]}}, {"deregister_table": {"id": [ns, "b"]}}]
    assert ann.ask("table/batch-commit", {"operations": drop}).json()["code"] == 15
    drop[1] = {"deregister_table": {"id": [ns, "c"]}}
    assert ann.ask("table/batch-commit", {"operations": drop}).json()["code"] == 4
    declare = [{"declare_table": {"id": [ns, "new"]}}]
    assert ann.ask("table/batch-commit", {"operations": declare}).json()["code"] == 15
    assert ann.ask("table/batch-commit", {"operations": drop[:1]}).status_code == 200
    assert admin.get(f"/v1/namespace/{ns}/table/list").json()["tables"] == ["b", "c"]


def test_bringing_code_needs_a_right_of_its_own(gate: Guarded, admin: Server, ns: str) -> None:
    send(admin, f"/v1/table/{ns}$rows/create", people(1)).raise_for_status()
    ann = person(gate)
    gate.grant(ann.name, "owner", "namespace", ns)
    virtual = {"name": "x", "virtual_column": {"udf": "", "input_columns": [], "data_type": {}}}
    path = f"table/{ns}$rows/add_columns"
    refused = ann.ask(path, {"new_columns": [virtual]})
    assert (refused.status_code, refused.json()["code"]) == (403, 15)
    assert f"lacks functions on table {ns}$rows" in refused.json()["error"]
    computed = {"name": "double", "computed": "id * 2"}
    assert ann.ask(path, {"new_columns": [computed, virtual]}).status_code == 403
    assert ann.ask(path, {"new_columns": [computed]}).status_code == 200
    backfill = {"column": "double", "manifest": '{"pip": ["evil"]}'}
    assert ann.ask(f"table/{ns}$rows/backfill_column", backfill).status_code == 403
    assert ann.ask("manifest/x/create", {"manifest": "{}"}).status_code == 403
    gate.grant(ann.name, "functions", "namespace", ns)
    assert ann.ask(path, {"new_columns": [virtual]}).status_code != 403
    assert ann.ask(f"table/{ns}$rows/backfill_column", backfill).status_code == 202
    assert ann.ask("manifest/x/create", {"manifest": "{}"}).status_code == 403
    gate.grant(ann.name, "functions")
    assert ann.ask(f"manifest/{ns}/create", {"manifest": "{}"}).status_code == 200
    assert ann.ask(f"manifest/{ns}/describe").status_code == 403


def test_grants_are_given_by_owners_who_give_no_more_than_they_have(gate: Guarded, ns: str) -> None:
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
    gate: Guarded, admin: Server, ns: str
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


def test_a_grant_that_comes_again_under_its_key_changes_nothing(
    gate: Guarded, admin: Server, ns: str
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


def test_jobs_and_transactions_are_seen_by_those_they_concern(
    gate: Guarded, admin: Server, ns: str
) -> None:
    send(admin, f"/v1/table/{ns}$rows/create", people(1)).raise_for_status()
    column = {"new_columns": [{"name": "double", "computed": "id * 2"}]}
    admin.post(f"/v1/table/{ns}$rows/add_columns", column).raise_for_status()
    path = f"/v1/table/{ns}$rows/backfill_column"
    job = admin.post(path, {"column": "double"}).json()["job_id"]
    ann, bob = person(gate), person(gate)
    gate.grant(ann.name, "reader", "table", ns, "rows")
    assert [j["job_id"] for j in ann.ask("jobs/list").json()["jobs"]] == [job]
    assert bob.ask("jobs/list").json()["jobs"] == []
    assert ann.ask(f"transaction/{job}/describe").status_code == 200
    assert bob.ask(f"transaction/{job}/describe").json()["code"] == 10
    cancel = {"actions": [{"setStatusAction": {"status": "Canceled"}}]}
    assert ann.ask(f"transaction/{job}/alter", cancel).json()["code"] == 15
    gate.grant(ann.name, "owner", "table", ns, "rows")
    made = ann.ask("table/" + f"{ns}$rows/rename", {"new_table_name": "r"})
    assert made.status_code == 403
    made = ann.ask(f"table/{ns}$rows/deregister").json()["transaction_id"]
    assert ann.ask(f"transaction/{made}/describe").status_code == 200
    hidden = bob.ask(f"transaction/{made}/describe")
    absent = bob.ask(f"transaction/{uuid.uuid4()}/describe")
    assert (hidden.json()["code"], absent.json()["code"]) == (10, 10)
    assert admin.post(f"/v1/transaction/{made}/describe").status_code == 200


def test_a_file_of_a_view_is_registered_by_who_may_read_the_view(
    gate: Guarded, admin: Server, ns: str
) -> None:
    loaded = admin.get(f"/iceberg/v1/namespaces/{ns}/views/v").json()["metadata-location"]
    mine = f"n{uuid.uuid4().hex[:8]}"
    admin.post(f"/v1/namespace/{mine}/create").raise_for_status()
    ann = person(gate)
    gate.grant(ann.name, "owner", "namespace", mine)
    body = {"name": "stolen", "metadata-location": loaded}
    path = f"/iceberg/v1/namespaces/{mine}/register-view"
    answer = ann.server.post(path, body)
    absent = ann.server.post(path, {**body, "metadata-location": f"{loaded}x"})
    assert answer.status_code == absent.status_code == 404
    assert answer.text == absent.text.replace(f"{loaded}x", loaded)


@pytest.mark.parametrize("route", ["lineage", "dialects?target=trino"])
def test_a_view_shows_no_columns_of_what_its_reader_may_not_read(
    gate: Guarded, admin: Server, ns: str, route: str
) -> None:
    columns = {"id": "secret_column"}
    table = people(1).rename_columns([columns.get(name, name) for name in people(1).schema.names])
    send(admin, f"/v1/table/{ns}$rows/create", table).raise_for_status()
    mine = f"n{uuid.uuid4().hex[:8]}"
    admin.post(f"/v1/namespace/{mine}/create").raise_for_status()
    ann = person(gate)
    gate.grant(ann.name, "owner", "namespace", mine)
    views.create(mine, "spy", f"select * from {ns}.rows").send(ann.server).raise_for_status()
    path = f"/iceberg/v1/namespaces/{mine}/views/spy/{route}"
    assert "secret_column" not in ann.server.get(path).text
    gate.grant(ann.name, "reader", "table", ns, "rows")
    assert "secret_column" in ann.server.get(path).text


def test_only_who_reads_the_whole_catalog_gets_metrics(gate: Guarded, admin: Server) -> None:
    assert gate.ask("/metrics", method="GET").status_code == 401
    assert gate.ask("/metrics", gate.key("somebody"), method="GET").status_code == 403
    assert admin.get("/metrics").status_code == 200


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


def test_a_stream_ends_with_the_right_to_it(gate: Guarded, admin: Server, ns: str) -> None:
    send(admin, f"/v1/table/{ns}$rows/create", people(1)).raise_for_status()
    column = {"new_columns": [{"name": "double", "computed": "id * 2"}]}
    admin.post(f"/v1/table/{ns}$rows/add_columns", column).raise_for_status()
    path = f"/v1/table/{ns}$rows/backfill_column"
    job = admin.post(path, {"column": "double"}).json()["job_id"]
    ann = person(gate)
    gate.grant(ann.name, "reader", "table", ns, "rows")
    with ann.server.client.stream("GET", f"/v1/jobs/{job}/events", timeout=10) as answer:
        lines = answer.iter_lines()
        assert next(lines) == "event: progress"
        gate.ungrant(ann.name, "reader", "table", ns, "rows")
        # The job waits for ever; only the end of the right ends the answer.
        assert "end" not in "".join(lines)


def test_an_idempotency_key_is_worth_nothing_to_others(gate: Guarded, ns: str) -> None:
    ann, bob, key = person(gate), person(gate), str(uuid.uuid4())
    gate.grant(ann.name, "owner", "namespace", ns)
    path, headers = f"/v1/table/{ns}$new/declare", {"Idempotency-Key": key}
    made = ann.server.client.post(path, headers=headers)
    assert made.status_code == 200
    assert bob.server.client.post(path, headers=headers).status_code == 404
    assert ann.server.client.post(path, headers=headers).json() == made.json()
    gate.ungrant(ann.name, "owner", "namespace", ns)
    # Rights are looked at before what was answered the last time; the table is its maker's.
    assert ann.server.client.post(path, headers=headers).status_code == 403


@pytest.mark.parametrize("kind", ["table", "view"])
def test_a_drop_is_answered_again_though_the_right_to_it_went_with_it(
    gate: Guarded, ns: str, kind: str
) -> None:
    ann, bob = person(gate), person(gate)
    method, path = "POST", f"/v1/table/{ns}$a/drop"
    if kind == "view":
        method, path = "DELETE", f"/iceberg/v1/namespaces/{ns}/views/v"
    gate.grant(ann.name, "owner", kind, ns, "a" if kind == "table" else "v")
    headers = {"Idempotency-Key": str(uuid.uuid4())}

    def ask(who: Person) -> httpx.Response:
        return who.server.client.request(method, path, headers=headers)

    first, second = ask(ann), ask(ann)
    assert first.status_code == second.status_code in (200, 204)
    assert first.content == second.content
    assert ask(bob).status_code == 404
    other = ann.server.client.request(method, f"{path}?x=y", headers=headers)
    assert other.status_code in (400, 422)


def test_a_right_can_be_asked_for_those_who_are_not_there(gate: Guarded, ns: str) -> None:
    need = Need(READ, "table", (ns, "a"))

    def may(*grantees: str) -> bool:
        return gate.work(lambda database: grants.may_in(database, grantees, need))

    name = f"p{uuid.uuid4().hex[:8]}"
    assert not may(name, "group:x")
    gate.grant(name, "reader", "namespace", ns)
    assert may(name, "group:x")
    gate.ungrant(name, "reader", "namespace", ns)
    assert not may(name, "group:x")
    # Made while authentication was off.
    assert may()


def test_a_revoked_grant_stops_at_once_however_many_ask_meanwhile(gate: Guarded, ns: str) -> None:
    name = f"p{uuid.uuid4().hex[:8]}"
    key, stop = gate.key(name), threading.Event()

    def ask_on_and_on() -> None:
        server = gate.as_(key)
        while not stop.is_set():
            assert server.post(f"/v1/table/{ns}$a/describe").status_code in (200, 404)

    with ThreadPoolExecutor(6) as threads:
        asking = [threads.submit(ask_on_and_on) for _ in range(6)]
        ann = Person(gate, name, gate.as_(key))
        try:
            for _ in range(20):
                gate.grant(name, "reader", "table", ns, "a")
                assert ann.sees(f"{ns}$a")
                gate.ungrant(name, "reader", "table", ns, "a")
                assert [ann.sees(f"{ns}$a") for _ in range(3)] == [False] * 3
        finally:
            stop.set()
    for each in asking:
        each.result()
