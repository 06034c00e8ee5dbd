"""Requests that need more than a right on one table: renames, batches, code, jobs, kept answers."""

import uuid

import httpx
import pytest

from tests.harness.clients import iceberg_requests as views
from tests.harness.data.arrow import people, send
from tests.harness.processes.access import GuardedServer, Person, person
from tests.harness.processes.servers import Server


def test_a_rename_needs_both_ends(gate: GuardedServer, admin: Server, ns: str) -> None:
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
    gate: GuardedServer, admin: Server, ns: str
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


def test_bringing_code_needs_a_right_of_its_own(
    gate: GuardedServer, admin: Server, ns: str
) -> None:
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


def test_jobs_and_transactions_are_seen_by_those_they_concern(
    gate: GuardedServer, admin: Server, ns: str
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
    for verb, body in (("describe", None), ("alter", {"actions": []})):
        hidden = bob.ask(f"transaction/{job}/{verb}", body).json()
        absent = bob.ask(f"transaction/{bob.name}/{verb}", body).json()
        assert (hidden["code"], absent["code"]) == (10, 10)
        assert hidden["error"].replace(job, bob.name) == absent["error"]
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
    gate: GuardedServer, admin: Server, ns: str
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
    gate: GuardedServer, admin: Server, ns: str, route: str
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


def test_only_who_reads_the_whole_catalog_gets_metrics(gate: GuardedServer, admin: Server) -> None:
    assert gate.ask("/metrics", method="GET").status_code == 401
    assert gate.ask("/metrics", gate.key("somebody"), method="GET").status_code == 403
    assert admin.get("/metrics").status_code == 200


def test_a_stream_ends_with_the_right_to_it(gate: GuardedServer, admin: Server, ns: str) -> None:
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


def test_an_idempotency_key_is_worth_nothing_to_others(gate: GuardedServer, ns: str) -> None:
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
    gate: GuardedServer, ns: str, kind: str
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
