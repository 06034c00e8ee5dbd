"""Who changes what a materialized view reads borrows nobody's rights: an owner has to say yes."""

import json
import os
import time
import uuid
from dataclasses import dataclass
from typing import Any

import httpx
import pytest

import penstock
from penstock.errors import NeedsConsent
from tests.harness.clients import iceberg_requests as views
from tests.harness.data.arrow import people, send
from tests.harness.jobs.fake_runner import Runner
from tests.harness.processes import nursery
from tests.harness.processes.access import GuardedServer, Person, person
from tests.harness.processes.servers import Server
from tests.harness.processes.waiting import until
from tests.server.access.conftest import CLUSTER


@dataclass
class Place:
    """Ann may read all tables and makes the view `v` from eve's Iceberg view; eve may read `t`."""

    gate: GuardedServer
    admin: Server
    ann: Person
    eve: Person
    # Whose tables they are; eve's Iceberg views; ann's materialized views.
    data: str
    secret: str
    ice: str
    home: str

    def create(self, name: str = "v", sql: str = "") -> httpx.Response:
        sql = sql or f"SELECT id FROM {self.ice}.w"
        body = {"kind": "query", "source_query": sql}
        return self.ann.ask(f"materialized_view/{self.home}${name}/create", body)

    def replace(self, who: Server, sql: str, name: str = "w") -> None:
        views.replace(self.ice, name, sql).send(who).raise_for_status()

    def ask(self, who: Person, operation: str, body: Any = None, name: str = "v") -> httpx.Response:
        if operation == "refresh":
            body = {"cluster": CLUSTER, **(body or {})}
        return who.ask(f"materialized_view/{self.home}${name}/{operation}", body)

    def needs(self, who: Person, name: str = "v") -> Any:
        told = self.ask(who, "describe", name=name).json()["properties"]
        found = told.get("penstock.needs_consent")
        return None if found is None else json.loads(found)

    @property
    def theft(self) -> str:
        return f"SELECT id FROM {self.secret}.s"

    def runner_jobs(self, id: str) -> list[dict[str, Any]]:
        """The job as a runner gets it."""
        key = self.gate.key(f"r{uuid.uuid4().hex[:8]}", kind="runner", clusters=(CLUSTER,))
        runner = Runner(self.gate.as_(key), CLUSTER)
        found = runner.lease(free=64)
        for job in found:
            runner.finish(job, "FAILED").raise_for_status()
        return [job for job in found if job["id"] == id]

    def runner(self) -> Runner:
        key = self.gate.key(f"r{uuid.uuid4().hex[:8]}", kind="runner", clusters=(CLUSTER,))
        runner = Runner(self.gate.as_(key), CLUSTER)
        while left := runner.lease():
            # Of other tests.
            runner.finish(left[0], "FAILED").raise_for_status()
        return runner


@pytest.fixture
def place(gate: GuardedServer) -> Place:
    admin, ann, eve = gate.admin(), person(gate), person(gate)
    data, secret, ice, home = (f"n{uuid.uuid4().hex[:8]}" for _ in range(4))
    for ns in (data, secret, ice, home):
        admin.post(f"/v1/namespace/{ns}/create").raise_for_status()
    for table in (f"{data}$t", f"{data}$u", f"{secret}$s"):
        send(admin, f"/v1/table/{table}/create", people(1, 2)).raise_for_status()
    for ns in (data, secret, ice):
        gate.grant(ann.name, "reader", "namespace", ns)
    gate.grant(ann.name, "owner", "namespace", home)
    gate.grant(eve.name, "reader", "namespace", data)
    gate.grant(eve.name, "owner", "namespace", ice)
    views.create(ice, "w", f"SELECT id FROM {data}.t").send(eve.server).raise_for_status()
    return Place(gate, admin, ann, eve, data, secret, ice, home)


def test_an_editor_borrows_no_rights_of_who_made_the_materialized_view(place: Place) -> None:
    place.create().raise_for_status()
    assert place.ask(place.ann, "refresh").status_code == 202
    place.replace(place.eve.server, place.theft)
    for operation in ("refresh", "explain"):
        refused = place.ask(place.ann, operation, {"mode": "full"})
        assert (refused.status_code, refused.json()["code"]) == (409, 15), refused.text
        assert f"{place.secret}$s" in refused.json()["error"]
    assert place.needs(place.ann) == [f"{place.secret}$s"]


def test_an_owner_who_may_read_the_new_source_consents(place: Place) -> None:
    place.create().raise_for_status()
    place.replace(place.eve.server, place.theft)
    shown = place.ask(place.ann, "consent", {"dry_run": True}).json()
    assert shown["sources"] == [f"{place.secret}$s"]
    assert place.needs(place.ann) is not None
    consented = place.ask(place.ann, "consent", {"state": shown["state"]})
    assert consented.json()["sources"] == [f"{place.secret}$s"], consented.text
    assert place.needs(place.ann) is None
    assert place.ask(place.ann, "refresh").status_code == 202
    # The next change needs another yes.
    place.replace(place.eve.server, f"SELECT id + 1 AS id FROM {place.secret}.s")
    assert place.ask(place.ann, "refresh").status_code == 409


def test_consent_is_for_what_was_shown_and_nothing_later(place: Place) -> None:
    place.create().raise_for_status()
    place.replace(place.eve.server, place.theft)
    shown = place.ask(place.ann, "consent", {"dry_run": True}).json()
    place.replace(place.eve.server, f"SELECT id FROM {place.secret}.s WHERE id > 1")
    late = place.ask(place.ann, "consent", {"state": shown["state"]})
    assert (late.status_code, late.json()["code"]) == (409, 14)
    assert place.ask(place.ann, "refresh").json()["code"] == 15


def test_only_an_owner_who_may_read_it_consents_and_names_stay_hidden(place: Place) -> None:
    place.create().raise_for_status()
    place.replace(place.eve.server, place.theft)
    bob = person(place.gate)
    place.gate.grant(bob.name, "writer", "table", place.home, "v")
    assert place.ask(bob, "consent").status_code == 403
    place.gate.grant(bob.name, "owner", "table", place.home, "v")
    for operation in ("refresh", "explain", "consent"):
        refused = place.ask(bob, operation)
        assert refused.status_code == (403 if operation == "consent" else 409), refused.text
        assert f"a source that {bob.name} may not read" in refused.json()["error"]
        assert place.secret not in refused.text
    assert place.needs(bob) == []
    assert place.needs(place.ann) == [f"{place.secret}$s"]


def test_nobody_learns_whether_a_hidden_table_exists(place: Place) -> None:
    place.create().raise_for_status()
    place.gate.grant(place.eve.name, "owner", "table", place.home, "v")
    told = []
    for table in ("s", "no"):
        place.replace(place.eve.server, f"SELECT id, nothing FROM {place.secret}.{table}")
        for operation in ("refresh", "explain", "consent"):
            answer = place.ask(place.eve, operation)
            told.append((operation, {**answer.json(), "instance": ""}, place.needs(place.eve)))
    assert told[:3] == told[3:]
    assert "nothing" not in str(told)


def test_an_editor_who_may_read_the_new_sources_stops_nothing(place: Place) -> None:
    place.create().raise_for_status()
    place.replace(place.eve.server, f"SELECT id FROM {place.data}.u")
    assert place.needs(place.ann) is None
    assert place.ask(place.ann, "refresh").status_code == 202
    # Nor does it later when the right is gone: it was there when the view took the change in.
    place.gate.ungrant(place.eve.name, "reader", "namespace", place.data)
    assert place.ask(place.ann, "refresh", {"mode": "full"}).status_code == 202
    # But what eve writes from now on needs a yes, although no source is new.
    place.replace(place.eve.server, f"SELECT id * 7 AS id FROM {place.data}.u")
    assert place.needs(place.ann) == [f"{place.data}$u"]


def test_somebody_else_s_change_of_the_same_view_is_theirs(place: Place) -> None:
    place.create().raise_for_status()
    place.replace(place.eve.server, place.theft)
    # Properties, and SQL that no materialized view reads, are no change of what is read.
    path = views.path(place.ice, "w")
    body = {"updates": [{"action": "set-properties", "updates": {"a": "b"}}]}
    place.admin.post(path, body).raise_for_status()
    both = views.version(place.theft)
    both["representations"].append({"type": "sql", "dialect": "trino", "sql": "select 1"})
    updates = [
        {"action": "add-view-version", "view-version": both},
        {"action": "set-current-view-version", "view-version-id": -1},
    ]
    place.admin.post(path, {"updates": updates}).raise_for_status()
    assert place.ask(place.ann, "refresh").status_code == 409
    # The admin, who may read it, writes it: then it is as good as any.
    both["representations"][0]["sql"] = f"SELECT id FROM {place.secret}.s WHERE id < 9"
    place.admin.post(path, {"updates": updates}).raise_for_status()
    assert place.ask(place.ann, "refresh").status_code == 202


def test_a_dialect_that_was_never_read_before_is_an_edit_too(place: Place) -> None:
    both = views.version(f"SELECT id FROM {place.data}.t")
    both["representations"].append({"type": "sql", "dialect": "trino", "sql": place.theft})
    body = {"name": "x", "schema": views.schema("id"), "view-version": both, "properties": {}}
    path = f"{views.ROOT}/namespaces/{place.ice}/views"
    place.eve.server.post(path, body).raise_for_status()
    place.create(sql=f"SELECT id FROM {place.ice}.x").raise_for_status()
    lost = {**both, "representations": both["representations"][1:]}
    updates = [
        {"action": "set-properties", "updates": {"replace.drop-dialect.allowed": "true"}},
        {"action": "add-view-version", "view-version": lost},
        {"action": "set-current-view-version", "view-version-id": -1},
    ]
    answer = place.eve.server.post(views.path(place.ice, "x"), {"updates": updates})
    assert answer.status_code == 200, answer.text
    assert place.ask(place.ann, "refresh").status_code == 409


def test_views_of_views_of_views_hide_nothing(place: Place) -> None:
    for name, below in (("x", "w"), ("y", "x")):
        sql = f"SELECT id FROM {place.ice}.{below}"
        views.create(place.ice, name, sql).send(place.eve.server).raise_for_status()
    place.create(sql=f"SELECT id FROM {place.ice}.y").raise_for_status()
    assert place.ask(place.ann, "refresh").status_code == 202
    place.replace(place.eve.server, place.theft)
    assert place.ask(place.ann, "refresh").status_code == 409
    # Nor does an innocent view of somebody who may read it help.
    views.create(place.secret, "z", place.theft).send(place.admin).raise_for_status()
    place.replace(place.eve.server, f"SELECT id FROM {place.secret}.z")
    assert place.needs(place.ann) == [f"{place.secret}$s", f"{place.secret}$z"]
    # Not even when eve may see that view, which tells its SQL and no rows.
    place.gate.grant(place.eve.name, "reader", "view", place.secret, "z")
    assert place.needs(place.ann) == [f"{place.secret}$s"]


def test_what_has_a_source_s_old_name_is_not_that_source(place: Place) -> None:
    place.create(sql=f"SELECT a.id FROM {place.ice}.w a JOIN {place.data}.u b ON a.id = b.id")
    # Neither view nor table goes while it is read, so nobody makes another with its name.
    assert views.drop(place.ice, "w").send(place.eve.server).status_code == 409
    body = {"location": "x", "mode": "overwrite"}
    for operation in ("drop", "deregister"):
        assert place.admin.post(f"/v1/table/{place.data}$u/{operation}").status_code == 409
    assert place.admin.post(f"/v1/table/{place.data}$u/register", body).status_code in (400, 409)
    # Both can be renamed, and others be given their names: the view still reads the first ones.
    views.rename(place.ice, "w", "old").send(place.eve.server).raise_for_status()
    views.create(place.ice, "w", place.theft).send(place.eve.server).raise_for_status()
    rename = f"/v1/table/{place.data}$u/rename?force=true"
    place.admin.post(rename, {"new_table_name": "first"}).raise_for_status()
    other = {"new_table_name": "u", "new_namespace_id": [place.data]}
    place.admin.post(f"/v1/table/{place.secret}$s/rename?force=true", other).raise_for_status()
    plan = place.ask(place.ann, "refresh")
    assert plan.status_code == 202, plan.text
    (job,) = place.runner_jobs(plan.json()["job_id"])
    read = [source["table"] for source in job["spec"]["definition"]["sources"]]
    assert sorted(read) == sorted([[place.data, "t"], [place.data, "first"]])


def test_what_takes_a_name_in_an_iceberg_view_is_read_if_its_author_may_read_it(
    place: Place,
) -> None:
    place.gate.ungrant(place.eve.name, "reader", "namespace", place.data)
    for table in "tu":
        place.gate.grant(place.eve.name, "reader", "table", place.data, table)
    place.create().raise_for_status()

    def rename(table: str, new: str) -> None:
        body = {"new_table_name": new, "new_namespace_id": [place.data]}
        path = f"/v1/table/{table}/rename?force=true"
        place.admin.post(path, body).raise_for_status()

    rename(f"{place.data}$t", "first")
    rename(f"{place.data}$u", "t")
    assert place.needs(place.ann) is None
    assert place.ask(place.ann, "refresh").status_code == 202
    # Eve's SQL stays as it is, and its name comes to mean what she may not read.
    rename(f"{place.data}$t", "u")
    rename(f"{place.secret}$s", "t")
    for operation in ("refresh", "explain"):
        refused = place.ask(place.ann, operation)
        assert (refused.status_code, refused.json()["code"]) == (409, 15), refused.text
        assert f"{place.data}$t" in refused.json()["error"]
    assert place.needs(place.ann) == [f"{place.data}$t"]
    shown = place.ask(place.ann, "consent", {"dry_run": True}).json()
    rename(f"{place.data}$t", "s")
    rename(f"{place.data}$first", "t")
    late = place.ask(place.ann, "consent", {"state": shown["state"]})
    assert (late.status_code, late.json()["code"]) == (409, 14)
    rename(f"{place.data}$t", "first")
    rename(f"{place.data}$s", "t")
    consented = place.ask(place.ann, "consent", {"state": shown["state"]})
    assert consented.json()["sources"] == [f"{place.data}$t"], consented.text
    assert place.ask(place.ann, "refresh").status_code == 202


def test_a_lease_asks_again_whether_the_creator_may_read(place: Place) -> None:
    place.create().raise_for_status()
    runner = place.runner()
    job = place.ask(place.ann, "refresh").json()["job_id"]
    place.gate.ungrant(place.ann.name, "reader", "namespace", place.data)
    assert runner.lease() == []
    told = place.ann.ask("jobs/describe", {"job_id": job}).json()
    assert told["job_state"] == "FAILED", told
    assert f"{place.ann.name}, who lacks reader on table {place.data}$t" in str(told)
    place.gate.grant(place.ann.name, "reader", "namespace", place.data)
    # A change between request and lease does not reach the job, and stops the next one.
    place.ask(place.ann, "refresh").raise_for_status()
    place.replace(place.eve.server, place.theft)
    (leased,) = runner.lease()
    assert [s["table"][1] for s in leased["spec"]["definition"]["sources"]] == ["t"]
    runner.finish(leased, "FAILED").raise_for_status()
    assert place.ask(place.ann, "refresh").status_code == 409


def test_a_cascade_stops_at_a_view_that_needs_consent(place: Place) -> None:
    place.create().raise_for_status()
    place.create("top", f"SELECT id FROM {place.home}.v").raise_for_status()
    place.replace(place.eve.server, place.theft)
    for operation in ("refresh", "explain"):
        refused = place.ask(place.ann, operation, {"cascade": True}, "top")
        assert (refused.status_code, refused.json()["code"]) == (409, 15)
    # Without it, the rows that are there already are as they were consented to.
    assert place.ask(place.ann, "refresh", name="top").status_code == 202


def test_a_view_that_refreshes_itself_waits_for_consent(place: Place) -> None:
    place.create().raise_for_status()
    place.replace(place.eve.server, place.theft)
    place.ask(place.ann, "alter", {"target_lag_seconds": 1}).raise_for_status()
    send(place.admin, f"/v1/table/{place.data}$t/insert", people(3)).raise_for_status()

    def jobs() -> list[Any]:
        body = {"table": f"{place.home}$v"}
        return [j for j in place.ann.ask("jobs/list", body).json()["jobs"] if place.home in str(j)]

    time.sleep(2.5)
    assert jobs() == []
    place.ask(place.ann, "consent").raise_for_status()
    until(jobs, "it is not refreshed though it has consent", seconds=60)


def test_the_sdk_and_the_command_line_consent(place: Place) -> None:
    place.create().raise_for_status()
    place.replace(place.eve.server, place.theft)
    key = place.ann.server.client.headers["authorization"].removeprefix("Bearer ")
    new, name = [f"{place.secret}.s"], f"{place.home}.v"

    def run(*more: str) -> Any:
        environ = {**os.environ, "PENSTOCK_URL": place.gate.server.url, "PENSTOCK_API_KEY": key}
        done = nursery.run(["views", "consent", name, "--json", *more], environ)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    with penstock.connect(place.gate.server.url, api_key=key) as lake:
        view = lake.view(name)
        with pytest.raises(NeedsConsent, match=place.secret):
            view.refresh(wait=False)
        assert view.needs_consent() == view.consent(dry_run=True).sources == new
        assert run("--dry-run") == {"name": name, "sources": new, "consented": False}
        assert run("-y")["consented"]
        assert lake.view(name).needs_consent() is None
        place.replace(place.eve.server, f"SELECT id - 1 AS id FROM {place.secret}.s")
        assert view.consent().sources == new
        assert view.consent().sources == []
    assert run("-y") == {"name": name, "sources": [], "consented": False}


def test_a_view_of_all_columns_gets_no_more_of_them(place: Place) -> None:
    place.create(sql=f"SELECT * FROM {place.data}.t").raise_for_status()
    before = place.ask(place.ann, "describe").json()["projections"]
    columns = {"new_columns": [{"name": "salary", "expression": "id * 1000"}]}
    place.admin.post(f"/v1/table/{place.data}$t/add_columns", columns).raise_for_status()
    answer = place.ask(place.ann, "refresh")
    assert "salary" not in [each["output_column"] for each in before]
    (job,) = place.runner_jobs(answer.json()["job_id"])
    assert "salary" not in str(job["spec"]["definition"]["sources"])
