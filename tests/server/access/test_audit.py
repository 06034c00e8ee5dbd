"""The audit log: every change by whomever, done or refused, in a file and in the catalog."""

import json
import time
import uuid
from typing import Any

from penstock.catalog.access.audit import make_entry
from tests.harness.processes.access import GuardedServer, connect
from tests.harness.processes.servers import Server
from tests.harness.processes.waiting import until


def list_entries(admin: Server, **body: Any) -> list[dict[str, Any]]:
    answer = admin.post("/v1/audit/list", body)
    assert answer.status_code == 200, answer.text
    found: list[dict[str, Any]] = answer.json()["entries"]
    return found


def test_changes_are_logged_with_who_what_and_outcome(gate: GuardedServer) -> None:
    admin, name = gate.admin(), f"p{uuid.uuid4().hex[:8]}"
    ann, ns = gate.as_(gate.key(name)), f"n{uuid.uuid4().hex[:8]}"
    admin.post(f"/v1/namespace/{ns}/create").raise_for_status()
    gate.grant(name, "reader", "namespace", ns)
    ann.post(f"/v1/namespace/{ns}/describe").raise_for_status()
    refused = ann.client.post(f"/v1/table/{ns}$t/declare", headers={"x-request-id": "mine"})
    assert refused.status_code == 403
    gate.server.post(f"/v1/table/{ns}$t/drop")
    admin.client.delete(f"/iceberg/v1/namespaces/{ns}").raise_for_status()
    deadline = time.monotonic() + 10
    while len(found := [e for e in list_entries(admin) if ns in e["object"]]) < 4:
        assert time.monotonic() < deadline, found
        time.sleep(0.2)
    dropped, unknown, declared, created = found
    assert (created["operation"], created["outcome"], created["status"]) == (
        *("CreateNamespace", "ok"),
        200,
    )
    assert (declared["principal"], declared["outcome"]) == (name, "refused")
    assert (declared["object"], declared["request_id"]) == (f"{ns}$t", "mine")
    assert declared["address"] == "127.0.0.1"
    assert (unknown["principal"], unknown["status"]) == ("", 401)
    assert dropped["operation"] == "IcebergDropNamespace"
    assert list_entries(admin, principal=name) == [declared]
    assert list_entries(admin, object=f"{ns}$t", operation="DeclareTable") == [declared]
    assert list_entries(admin, principal=name, until=1) == []
    pages = admin.post("/v1/audit/list", {"limit": 1}).json()
    assert len(pages["entries"]) == 1
    again = {"limit": 1, "page_token": pages["page_token"]}
    assert list_entries(admin, **again) != pages["entries"]
    lines = (gate.server.data / "audit.jsonl").read_text().splitlines()
    assert declared in [json.loads(line) for line in lines]
    assert oct((gate.server.data / "audit.jsonl").stat().st_mode)[-3:] == "600"


def test_only_owners_of_the_catalog_read_it(gate: GuardedServer) -> None:
    key = gate.key(name := f"p{uuid.uuid4().hex[:8]}")
    for role in ("reader", "writer"):
        gate.grant(name, role)
        assert gate.ask("/v1/audit/list", key).json()["code"] == 15
    gate.grant(name, "owner")
    assert gate.ask("/v1/audit/list", key).status_code == 200


def test_a_change_is_logged_under_the_name_of_what_it_changed(gate: GuardedServer) -> None:
    admin, ns = gate.admin(), f"n{uuid.uuid4().hex[:8]}"
    admin.post(f"/v1/namespace/{ns}/create").raise_for_status()
    # Another delimiter is another spelling of the same.
    admin.post(f"/v1/table/{ns}.t/declare", delimiter=".").raise_for_status()
    grant = {"principal": "bob", "role": "reader", "namespace": [ns]}
    admin.post("/v1/grants/create", grant).raise_for_status()
    until(lambda: len([e for e in list_entries(admin) if ns in e["object"]]) == 3)
    given, declared, _ = (e["object"] for e in list_entries(admin) if ns in e["object"])
    assert declared == f"{ns}$t"
    assert given == f"reader on namespace {ns} of bob"


def test_who_leaves_before_the_answer_is_logged_all_the_same(gate: GuardedServer) -> None:
    admin, ns = gate.admin(), f"n{uuid.uuid4().hex[:8]}"
    with connect(gate.server) as connection:
        connection.sendall(
            f"POST /v1/namespace/{ns}/create HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n"
            f"Authorization: {admin.client.headers['authorization']}\r\n\r\n{{".encode()
        )
        # Only when it is on its way there is somebody to leave.
        until(lambda: b"penstock_requests_in_flight 2" in admin.get("/metrics").content)
    until(lambda: any(ns in entry["object"] for entry in list_entries(admin)))
    (entry,) = [entry for entry in list_entries(admin) if ns in entry["object"]]
    assert (entry["operation"], entry["status"], entry["outcome"]) == (
        *("CreateNamespace", 499),
        "failed",
    )


def test_entries_of_one_millisecond_sort_in_the_order_of_their_requests() -> None:
    ids = [make_entry("ann", "DropTable", str(number)).id for number in range(1000)]
    assert ids == sorted(ids)
