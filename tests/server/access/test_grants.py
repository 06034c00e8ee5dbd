"""What a grant gives: on tables, namespaces and to groups, in listings, after renames and drops."""

import threading
import uuid
from concurrent.futures import ThreadPoolExecutor

from penstock.catalog.access import grants
from penstock.model.rights import READ, Need
from tests.harness.clients import iceberg_requests as views
from tests.harness.data.arrow import people, send
from tests.harness.processes.access import GuardedServer, Issuer, Person, person
from tests.harness.processes.servers import Server


def test_a_grant_on_a_table_shows_that_table_and_the_way_to_it(
    gate: GuardedServer, ns: str
) -> None:
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


def test_a_grant_on_a_view_shows_that_view_alone(gate: GuardedServer, ns: str) -> None:
    ann = person(gate)
    gate.grant(ann.name, "reader", "view", ns, "v")
    path = f"/iceberg/v1/namespaces/{ns}/views"
    assert [each["name"] for each in ann.server.get(path).json()["identifiers"]] == ["v"]
    assert ann.server.get(f"{path}/v").status_code == 200
    assert ann.server.client.delete(f"{path}/v").status_code == 403
    assert ann.get(f"namespace/{ns}/table/list")["tables"] == []


def test_pages_of_a_listing_are_full_whatever_is_left_out(
    gate: GuardedServer, admin: Server
) -> None:
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
    gate: GuardedServer, admin: Server, ns: str
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


def test_a_revoked_grant_stops_at_once(gate: GuardedServer, ns: str) -> None:
    ann = person(gate)
    for _ in range(3):
        gate.grant(ann.name, "reader", "table", ns, "a")
        assert ann.sees(f"{ns}$a")
        gate.ungrant(ann.name, "reader", "table", ns, "a")
        assert not ann.sees(f"{ns}$a")


def test_grants_follow_a_rename_and_end_with_a_drop(
    gate: GuardedServer, admin: Server, ns: str
) -> None:
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


def test_members_of_a_group_have_its_grants(gate: GuardedServer, issuer: Issuer, ns: str) -> None:
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


def test_who_makes_something_owns_it(gate: GuardedServer, ns: str) -> None:
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


def test_a_right_can_be_asked_for_those_who_are_not_there(gate: GuardedServer, ns: str) -> None:
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


def test_a_revoked_grant_stops_at_once_however_many_ask_meanwhile(
    gate: GuardedServer, ns: str
) -> None:
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
