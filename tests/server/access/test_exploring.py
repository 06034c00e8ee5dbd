"""Looking around shows what the caller may see, and of the rest not even how much there is."""

import uuid
from dataclasses import dataclass
from typing import Any

import pytest

from tests.harness.clients import iceberg_requests as views
from tests.harness.clients import iceberg_tables
from tests.harness.data.arrow import people, send
from tests.harness.processes.access import GuardedServer, Person, person
from tests.harness.processes.servers import Server
from tests.harness.processes.waiting import until

NOTHING = {
    "namespace": 0,
    "table": 0,
    "materialized_view": 0,
    "view": 0,
    "iceberg_table": 0,
    "function": 0,
}


@dataclass
class Land:
    """A namespace with things of each kind, and somebody with a key and no rights."""

    gate: GuardedServer
    admin: Server
    ns: str
    ann: Person

    def names(self, how: str, id: str, **body: Any) -> list[str]:
        answer = self.ann.ask(f"namespace/{id}/names/{how}", body)
        if answer.status_code != 200:
            return [str(answer.status_code)]
        return ["$".join(each["id"]) for each in answer.json()["names"]]

    def overview(self) -> dict[str, Any]:
        answer = self.ann.ask("overview", {})
        assert answer.status_code == 200, answer.text
        found: dict[str, Any] = answer.json()
        return found

    def roles(self, kind: str, *id: str) -> list[str]:
        answer = self.ann.ask("rights/describe", {"objects": [{"kind": kind, "id": list(id)}]})
        found: list[str] = answer.json()["roles"][0]
        return found


@pytest.fixture
def land(gate: GuardedServer) -> Land:
    admin, ns = gate.admin(), f"n{uuid.uuid4().hex[:8]}"
    for each in (ns, f"{ns}$low", f"{ns}$low$deep", f"{ns}$side"):
        admin.post(f"/v1/namespace/{each}/create").raise_for_status()
    for each in (f"{ns}$t", f"{ns}$low$t", f"{ns}$low$deep$t", f"{ns}$side$t"):
        send(admin, f"/v1/table/{each}/create", people(1)).raise_for_status()
    views.create(ns, "v").send(admin).raise_for_status()
    query = {"kind": "query", "source_query": f"SELECT id FROM {ns}.t"}
    admin.post(f"/v1/materialized_view/{ns}$m/create", query).raise_for_status()
    return Land(gate, admin, ns, person(gate))


def test_who_has_no_rights_sees_nothing_and_counts_nothing(land: Land) -> None:
    told = land.overview()
    assert told["counts"] == NOTHING
    assert (told["running"], told["failures"]) == ([], [])
    assert told["jobs"] == {"queued": 0, "running": 0, "paused": 0}
    assert told["views"] == {"stale": 0, "late": 0, "complete": True, "worst": []}
    assert {n for day in told["days"] for n in list(day.values())[1:]} == {0}
    assert land.names("list", "$") == []
    assert land.names("search", "$", text=land.ns) == []
    assert land.names("list", land.ns) == ["404"]
    assert land.names("search", land.ns, text="t") == ["404"]
    assert land.roles("table", land.ns, "t") == []


def test_a_namespace_that_may_not_be_seen_is_as_one_that_is_not_there(land: Land) -> None:
    absent = f"n{uuid.uuid4().hex[:8]}"
    for how, body in (("list", {}), ("search", {"text": "t"})):
        found, missing = (
            land.ann.server.client.post(
                f"/v1/namespace/{ns}/names/{how}", json=body, headers={"x-request-id": "same"}
            )
            for ns in (land.ns, absent)
        )
        assert found.status_code == missing.status_code == 404
        assert found.text.replace(land.ns, absent) == missing.text


def test_an_iceberg_table_is_seen_by_who_may_read_it_and_by_nobody_else(land: Land) -> None:
    ns, name = land.ns, land.ann.name
    iceberg_tables.make(land.admin, ns, "ice")
    query = {"kind": "query", "source_query": f"SELECT a FROM {ns}.ice"}
    land.admin.post(f"/v1/materialized_view/{ns}$of_ice/create", query).raise_for_status()
    assert land.overview()["counts"] == NOTHING
    assert land.names("search", "$", text="ice") == []
    assert land.roles("iceberg_table", ns, "ice") == []
    hidden = land.ann.ask(f"table/{ns}$ice/lineage", {})
    absent = land.ann.ask(f"table/{ns}$nice/lineage", {})
    assert (hidden.status_code, absent.status_code) == (404, 404)
    assert hidden.json()["error"] == absent.json()["error"].replace("nice", "ice")
    land.gate.grant(name, "reader", "table", ns, "of_ice")
    # What the view reads is not told to who may not read it.
    assert draw(land, f"{ns}$of_ice") == ["of_ice"]
    land.gate.ungrant(name, "reader", "table", ns, "of_ice")
    land.gate.grant(name, "reader", "table", ns, "ice")
    assert land.overview()["counts"] == {**NOTHING, "namespace": 1, "iceberg_table": 1}
    assert land.names("list", ns, kinds=["iceberg_table"]) == [f"{ns}$ice"]
    assert land.names("search", "$", text="ice") == [f"{ns}$ice"]
    assert land.roles("iceberg_table", ns, "ice") == ["reader"]
    assert draw(land, f"{ns}$ice") == ["ice"]
    land.gate.grant(name, "writer", "namespace", ns)
    assert land.overview()["counts"]["iceberg_table"] == 1
    assert land.roles("iceberg_table", ns, "ice") == ["reader", "writer"]
    assert draw(land, f"{ns}$ice") == ["ice", "ice>of_ice", "of_ice"]


def test_a_grant_on_a_subtree_shows_it_and_the_way_there(land: Land) -> None:
    ns = land.ns
    land.gate.grant(land.ann.name, "reader", "namespace", ns, "low")
    # The namespace above, the granted one, and the one below.
    assert land.overview()["counts"] == {**NOTHING, "namespace": 3, "table": 2}
    assert land.names("list", "$") == [ns]
    assert land.names("list", ns) == [f"{ns}$low"]
    assert land.names("search", "$", text="t") == [f"{ns}$low$t", f"{ns}$low$deep$t"]
    assert land.names("search", "$", text="low") == [f"{ns}$low"]
    assert land.names("search", ns, text="deep") == [f"{ns}$low$deep"]
    assert land.roles("namespace", ns) == []
    assert land.roles("namespace", ns, "low") == ["reader"]
    assert land.roles("table", ns, "low", "deep", "t") == ["reader"]
    assert land.roles("table", ns, "t") == []


def test_overlapping_grants_count_once(land: Land) -> None:
    ns, name = land.ns, land.ann.name
    land.gate.grant(name, "reader", "namespace", ns, "low")
    land.gate.grant(name, "writer", "namespace", ns, "low", "deep")
    land.gate.grant(name, "owner", "namespace", ns, "low", "deep")
    land.gate.grant(name, "reader", "table", ns, "low", "t")
    land.gate.grant(name, "reader", "table", ns, "t")
    land.gate.grant(name, "reader", "view", ns, "v")
    land.gate.grant(name, "reader", "table", ns, "m")
    assert land.overview()["counts"] == {
        **NOTHING,
        "namespace": 3,
        "table": 3,
        "view": 1,
        "materialized_view": 1,
    }
    assert land.roles("namespace", ns, "low", "deep") == ["reader", "writer", "owner"]
    assert land.names("list", ns) == [f"{ns}$low", f"{ns}$m", f"{ns}$t", f"{ns}$v"]


def test_a_namespace_called_alike_is_another_one(land: Land) -> None:
    ns = land.ns
    for each in (f"{ns}$lo", f"{ns}$low2"):
        land.admin.post(f"/v1/namespace/{each}/create").raise_for_status()
        land.admin.post(f"/v1/table/{each}$t/declare").raise_for_status()
    land.gate.grant(land.ann.name, "reader", "namespace", ns, "low")
    assert land.overview()["counts"] == {**NOTHING, "namespace": 3, "table": 2}
    assert land.names("list", ns) == [f"{ns}$low"]


def test_functions_alone_show_nothing(land: Land) -> None:
    land.gate.grant(land.ann.name, "functions", "namespace", land.ns)
    assert land.overview()["counts"] == NOTHING
    assert land.names("search", "$", text=land.ns) == []
    assert land.roles("namespace", land.ns) == ["functions"]


def test_a_right_that_is_taken_back_takes_the_counts_along(land: Land) -> None:
    land.gate.grant(land.ann.name, "reader", "namespace", land.ns)
    assert land.overview()["counts"]["table"] == 4
    assert land.overview()["views"]["stale"] == 1
    land.gate.ungrant(land.ann.name, "reader", "namespace", land.ns)
    told = land.overview()
    assert (told["counts"], told["views"]["stale"]) == (NOTHING, 0)


def test_jobs_and_stale_views_are_those_of_what_may_be_seen(land: Land) -> None:
    ns = land.ns
    columns = {"new_columns": [{"name": "double", "computed": "id * 2"}]}
    jobs = []
    for table in ("t", "side$t"):
        path = f"/v1/table/{ns}${table}"
        land.admin.post(f"{path}/add_columns", columns).raise_for_status()
        asked = land.admin.post(f"{path}/backfill_column", {"column": "double"})
        jobs.append(asked.json()["job_id"])
    land.gate.grant(land.ann.name, "reader", "table", ns, "t")
    told = land.overview()
    assert told["jobs"]["queued"] == 1
    assert told["jobs"]["waiting_seconds"] >= 0
    assert told["views"]["stale"] == 0
    land.gate.grant(land.ann.name, "reader", "table", ns, "m")
    told = land.overview()
    assert told["jobs"]["queued"] == 1
    assert [each["id"] for each in told["views"]["worst"]] == [[ns, "m"]]
    land.admin.post("/v1/jobs/cancel", {"job_id": jobs[0]}).raise_for_status()
    land.admin.post("/v1/jobs/cancel", {"job_id": jobs[1]}).raise_for_status()
    land.gate.grant(land.ann.name, "reader", "namespace", ns, "low")
    told = land.overview()
    assert told["jobs"]["queued"] == 0
    assert sum(day["canceled"] for day in told["days"]) == 1


def test_who_reads_the_catalog_counts_everything(land: Land) -> None:
    before = land.admin.post("/v1/overview", {}).json()["counts"]
    assert before["table"] >= 4
    land.gate.grant(land.ann.name, "reader")
    assert land.overview()["counts"] == before
    assert len(land.overview()["runners"]) >= 2
    assert land.ann.ask("overview", {"days": 1}).json()["days"][-1]["day"]


@pytest.mark.parametrize("days", [0, 91, "x", 1.5])
def test_an_overview_is_of_a_number_of_days(land: Land, days: object) -> None:
    assert land.ann.ask("overview", {"days": days}).status_code == 400


def test_nobody_looks_around_without_a_key(gate: GuardedServer) -> None:
    for path in ("overview", "rights/describe", "namespace/$/names/list"):
        assert gate.server.post(f"/v1/{path}", {"objects": []}).status_code == 401


def draw(land: Land, id: str) -> list[str]:
    """The names in a lineage, each edge among them."""
    answer = land.ann.ask(f"table/{id}/lineage", {})
    if answer.status_code != 200:
        return [str(answer.status_code)]
    found = answer.json()
    assert found["cut"] is False
    names = {node["key"]: node["id"][-1] for node in found["nodes"]}
    edges = [f"{names[edge['from']]}>{names[edge['to']]}" for edge in found["edges"]]
    return sorted([*names.values(), *edges])


def test_a_lineage_has_only_what_may_be_read(land: Land) -> None:
    ns, name = land.ns, land.ann.name
    query = {"kind": "query", "source_query": f"SELECT id FROM {ns}.m"}
    land.admin.post(f"/v1/materialized_view/{ns}$m2/create", query).raise_for_status()
    assert draw(land, f"{ns}$t") == ["404"]
    land.gate.grant(name, "reader", "table", ns, "t")
    assert draw(land, f"{ns}$t") == ["t"]
    # What is only reached through something hidden is hidden.
    land.gate.grant(name, "reader", "table", ns, "m2")
    assert draw(land, f"{ns}$t") == ["t"]
    assert draw(land, f"{ns}$m2") == ["m2"]
    land.gate.grant(name, "reader", "table", ns, "m")
    assert draw(land, f"{ns}$m2") == ["m", "m2", "m>m2", "t", "t>m"]


def test_what_is_hidden_does_not_fill_a_lineage(land: Land) -> None:
    ns = land.ns
    for number in range(3):
        query = {"kind": "query", "source_query": f"SELECT id FROM {ns}.t"}
        path = f"/v1/materialized_view/{ns}$h{number}/create"
        land.admin.post(path, query).raise_for_status()
    land.gate.grant(land.ann.name, "reader", "table", ns, "t")
    answer = land.ann.ask(f"table/{ns}$t/lineage", {"limit": 1}).json()
    assert (len(answer["nodes"]), answer["cut"]) == (1, False)


def test_the_catalogs_owner_sees_all_keys_and_no_secret(land: Land) -> None:
    assert land.ann.ask("keys/list", {}).status_code == 403
    land.gate.grant(land.ann.name, "writer")
    assert land.ann.ask("keys/list", {}).status_code == 403
    token, key = land.gate.make_key(land.ann.name, note="for tests", groups=("team",))
    land.gate.revoke(token.id)
    answer = land.admin.post("/v1/keys/list", {"principal": land.ann.name})
    found = answer.json()["keys"]
    assert len(found) == 2
    [shown] = [each for each in found if each["id"] == token.id]
    assert (shown["note"], shown["groups"], shown["kind"]) == ("for tests", ["team"], "key")
    assert shown["revoked_at"] >= shown["created_at"]
    assert token.digest not in answer.text
    assert key.rpartition("_")[2] not in answer.text


def test_keys_come_in_pages(land: Land) -> None:
    for _ in range(4):
        land.gate.key(land.ann.name)
    found, token = [], None
    while True:
        body = {"principal": land.ann.name, "limit": 2, "page_token": token}
        answer = land.admin.post("/v1/keys/list", body).json()
        found += [each["id"] for each in answer["keys"]]
        token = answer.get("page_token")
        if token is None:
            break
    whole = land.admin.post("/v1/keys/list", {"principal": land.ann.name}).json()["keys"]
    assert found == [each["id"] for each in whole]
    assert len(set(found)) == 5
    assert land.admin.post("/v1/keys/list", {"limit": 0}).status_code == 400


def test_sizes_are_those_of_what_may_be_seen(land: Land) -> None:
    ns = land.ns
    land.gate.grant(land.ann.name, "reader", "table", ns, "t")
    found: dict[str, Any] = {}

    def is_known() -> bool:
        found.update(land.overview()["size"])
        return bool(found["complete"] and found["tables"])

    until(is_known, "the size was never noted")
    assert (found["tables"], found["rows"]) == (1, 1)
    # Rights that change make an overview anew.
    land.gate.grant(land.ann.name, "reader", "namespace", ns, "low")
    assert land.overview()["size"]["rows"] == 3
    land.gate.ungrant(land.ann.name, "reader", "namespace", ns, "low")
    land.gate.ungrant(land.ann.name, "reader", "table", ns, "t")
    told = land.overview()["size"]
    assert (told["tables"], told["rows"], told["bytes"]) == (0, 0, 0)
    assert {(day["rows"], day["bytes"]) for day in told["days"]} == {(0, 0)}
