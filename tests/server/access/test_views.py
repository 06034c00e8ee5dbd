"""Materialized views: who may make them, with whose rights they read, and who hears of them."""

import base64
import json
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pyarrow as pa
import pytest

from tests.harness.clients.pylance import connect
from tests.harness.data.arrow import people, send
from tests.harness.jobs.fake_runner import Runner
from tests.harness.processes.access import GuardedServer, Person, guarded, person
from tests.harness.processes.servers import Server
from tests.harness.processes.waiting import until
from tests.harness.views.definitions import encode_schema, make_column_udf, make_spec
from tests.harness.views.server_views import commit_rows
from tests.server.access.conftest import CLUSTER


@dataclass
class Place:
    """A table that is not ann's but may be read by her, and a namespace of her own."""

    gate: GuardedServer
    admin: Server
    data: str
    home: str
    ann: Person

    @property
    def view(self) -> str:
        return f"{self.home}$v"

    def create(self, **more: Any) -> httpx.Response:
        body = {"kind": "query", "source_query": f"SELECT id FROM {self.data}.t", **more}
        return self.ann.ask(f"materialized_view/{self.view}/create", body)

    def ask(self, who: Person, operation: str, body: Any = None, **params: Any) -> httpx.Response:
        return who.ask(f"materialized_view/{self.view}/{operation}", body, **params)


@pytest.fixture
def place(gate: GuardedServer) -> Place:
    return make_place(gate)


def make_place(gate: GuardedServer) -> Place:
    admin, ann = gate.admin(), person(gate)
    data, home = (f"n{uuid.uuid4().hex[:8]}" for _ in range(2))
    for ns in (data, home):
        admin.post(f"/v1/namespace/{ns}/create").raise_for_status()
    send(admin, f"/v1/table/{data}$t/create", people(1, 2)).raise_for_status()
    gate.grant(ann.name, "reader", "table", data, "t")
    gate.grant(ann.name, "owner", "namespace", home)
    return Place(gate, admin, data, home, ann)


def test_what_may_not_be_read_is_not_there_for_a_query(place: Place) -> None:
    place.gate.ungrant(place.ann.name, "reader", "table", place.data, "t")
    hidden = place.create()
    absent = place.create(source_query=f"SELECT id FROM {place.data}.q")
    assert hidden.status_code == absent.status_code == 400
    told = [{**a.json(), "instance": ""} for a in (hidden, absent)]
    said = json.dumps(told[1])
    for sign in "$.":
        said = said.replace(f"{place.data}{sign}q", f"{place.data}{sign}t")
    assert told[0] == json.loads(said)
    # Nor does a hint name it.
    near = f"SELECT id FROM {place.data}.tt"
    assert "there is" not in place.create(source_query=near).text
    place.gate.grant(place.ann.name, "reader", "table", place.data, "t")
    assert f"there is {place.data}$t" in place.create(source_query=near).text


def chunker() -> dict[str, Any]:
    makes = pa.schema([("word", pa.string())])
    spec = make_spec("chunker", makes, input_columns=["name"], batch=False)
    return {"kind": "chunker", "udtf_spec": spec, "output_schema": encode_schema(makes)}


def column_function(table: str) -> dict[str, Any]:
    query = {
        "base": {},
        "source_table": table,
        "column_udfs": [make_column_udf("size", "name")],
    }
    makes = people(1).schema.append(pa.field("size", pa.int64()))
    return {"source_query": json.dumps(query), "output_schema": encode_schema(makes)}


@pytest.mark.parametrize("kind", ["chunker", "column function"])
def test_a_view_with_a_function_brings_code(place: Place, kind: str) -> None:
    body = chunker() if kind == "chunker" else column_function("t")
    if kind != "chunker":
        send(place.admin, f"/v1/table/{place.home}$t/create", people(1)).raise_for_status()
    refused = place.create(**body)
    assert (refused.status_code, refused.json()["code"]) == (403, 15), refused.text
    assert f"{place.ann.name} lacks functions on namespace {place.home}" in refused.text
    place.gate.grant(place.ann.name, "functions", "namespace", place.home)
    created = place.create(**body)
    assert created.status_code == 201, created.text


def test_reading_a_view_needs_a_right_on_the_view_alone(place: Place) -> None:
    place.create().raise_for_status()
    bob = person(place.gate)
    listing = f"namespace/{place.home}/materialized_view/list"
    assert place.ask(bob, "describe").status_code == 404
    place.gate.grant(bob.name, "reader", "table", place.home, "v")
    assert place.ask(bob, "describe").status_code == 200
    assert place.ask(bob, "explain").status_code == 200
    assert bob.ask(f"table/{place.view}/count_rows").json() == 0
    assert bob.get(listing)["views"] == ["v"]
    for operation in ("refresh", "alter", "drop"):
        assert place.ask(bob, operation).json()["code"] == 15, operation
    second = f"materialized_view/{place.home}$w/create"
    query = {"kind": "query", "source_query": f"SELECT id FROM {place.data}.t"}
    place.ann.ask(second, query).raise_for_status()
    assert bob.get(listing)["views"] == ["v"]
    assert place.ann.get(listing)["views"] == ["v", "w"]


def test_a_view_reads_with_the_rights_of_who_created_it(place: Place) -> None:
    place.create().raise_for_status()
    bob = person(place.gate)
    place.gate.grant(bob.name, "writer", "table", place.home, "v")
    # The table is not there for bob, and need not be.
    assert place.ask(bob, "refresh", {"cluster": CLUSTER}).status_code == 202
    place.gate.ungrant(place.ann.name, "reader", "table", place.data, "t")
    body = {"cluster": CLUSTER, "mode": "full"}
    for who in (place.ann, bob):
        for operation in ("refresh", "explain"):
            refused = place.ask(who, operation, body)
            assert (refused.status_code, refused.json()["code"]) == (403, 15), refused.text
            lacks = f"{place.ann.name}, who lacks reader on table {place.data}$t"
            assert lacks in refused.json()["error"]


def stack(place: Place) -> str:
    """A view of ann's, and another one that reads it, which is returned."""
    place.create().raise_for_status()
    upper = f"{place.home}$w"
    body = {"kind": "query", "source_query": f"SELECT id FROM {place.home}.v"}
    place.ann.ask(f"materialized_view/{upper}/create", body).raise_for_status()
    return upper


def test_tables_below_a_view_of_views_are_named_to_who_may_read_them(place: Place) -> None:
    upper = stack(place)
    bob = person(place.gate)
    place.gate.grant(bob.name, "reader", "table", place.home, "w")

    def tell(who: Person) -> tuple[str, Any]:
        told = who.ask(f"table/{upper}/describe", {}).json()["properties"]
        return told["penstock.stale"], json.loads(told["penstock.through"])

    assert tell(place.ann) == ("true", {place.view: {f"{place.data}$t": 1}})
    assert tell(bob) == ("true", {place.view: {}})


def rename(place: Place, old: str, new: str) -> None:
    """Give a column of the table another name."""
    body = {"alterations": [{"path": old, "rename": new}]}
    path = f"/v1/table/{place.data}$t/alter_columns?force=true"
    place.admin.post(path, body).raise_for_status()


def test_a_cascade_needs_the_right_to_refresh_each_view(place: Place) -> None:
    upper = stack(place)
    bob, body = person(place.gate), {"cascade": True, "cluster": CLUSTER}

    def ask(operation: str) -> httpx.Response:
        return bob.ask(f"materialized_view/{upper}/{operation}", body)

    place.gate.grant(bob.name, "writer", "table", place.home, "w")
    for operation in ("refresh", "explain"):
        hidden = ask(operation)
        assert (hidden.status_code, hidden.json()["code"]) == (403, 15), hidden.text
        assert f"{place.home}$v" not in hidden.text
    # What is wrong with a view that is hidden is not told either.
    rename(place, "id", "key")
    for operation in ("refresh", "explain"):
        assert "another view that" in ask(operation).json()["error"]
    rename(place, "key", "id")
    # To see the plan it is enough to read what it tells of.
    place.gate.grant(bob.name, "reader", "table", place.home, "v")
    assert list(ask("explain").json()["upstream"]) == [f"{place.home}$v"]
    refused = ask("refresh")
    assert refused.status_code == 403
    assert f"{bob.name} lacks writer on table {place.home}$v" in refused.json()["error"]
    place.gate.grant(bob.name, "writer", "table", place.home, "v")
    assert ask("refresh").status_code == 202
    place.gate.ungrant(place.ann.name, "reader", "table", place.data, "t")
    # Each view reads with the rights of who created it.
    assert f"{place.ann.name}, who lacks reader" in ask("refresh").json()["error"]


def test_a_runner_publishes_versions_of_the_views_of_its_cascade_alone(place: Place) -> None:
    upper = stack(place)
    key = place.gate.key(f"r{uuid.uuid4().hex[:8]}", kind="runner", clusters=(CLUSTER,))
    runner = Runner(place.gate.as_(key), CLUSTER)

    def publish(*tables: str) -> httpx.Response:
        entries = [{"id": t.split("$"), "version": 2, "manifest_path": "x"} for t in tables]
        return runner.server.post("/v1/table/version/batch-create", {"entries": entries})

    assert publish(place.view).status_code == 404
    while left := runner.lease():
        # Of other tests.
        runner.finish(left[0], "FAILED").raise_for_status()
    body = {"cluster": CLUSTER, "cascade": True}
    place.ann.ask(f"materialized_view/{upper}/refresh", body).raise_for_status()
    (job,) = runner.lease()
    # They are its to write: what is refused is the manifest that is not there.
    assert publish(place.view, upper).status_code == 400
    assert publish(place.view, f"{place.data}$t").status_code == 403
    assert runner.finish(job, "FAILED").status_code == 200
    assert publish(place.view, upper).status_code == 404


def test_a_runner_reads_the_tables_of_the_view_that_it_refreshes(place: Place) -> None:
    send(place.admin, f"/v1/table/{place.data}$u/create", people(1)).raise_for_status()
    place.create().raise_for_status()
    key = place.gate.key(f"r{uuid.uuid4().hex[:8]}", kind="runner", clusters=(CLUSTER,))
    runner = Runner(place.gate.as_(key), CLUSTER)

    def status(table: str, operation: str, body: Any = None) -> int:
        return runner.server.post(f"/v1/table/{table}/{operation}", body).status_code

    source = f"{place.data}$t"
    assert status(source, "describe") == 404
    while left := runner.lease():
        # Of other tests.
        runner.finish(left[0], "FAILED").raise_for_status()
    job_id = place.ask(place.ann, "refresh", {"cluster": CLUSTER}).json()["job_id"]
    (job,) = runner.lease()
    assert job["id"] == job_id
    assert status(source, "describe") == status(place.view, "describe") == 200
    assert status(source, "version/list") == 200
    assert status(source, "version/create", {"version": "x"}) == 403
    assert status(place.view, "version/create", {"version": "x"}) == 400
    assert status(f"{place.data}$u", "describe") == 404
    assert runner.finish(job, "FAILED").status_code == 200
    assert status(source, "describe") == 404


def commit(server: Server, view: str, job: str) -> int:
    told = {"penstock.job": job, "penstock.attempt": "1"}
    return commit_rows(connect(server), view, **told).version


def test_rows_of_a_view_come_only_from_the_runner_that_refreshes_it(place: Place) -> None:
    place.create().raise_for_status()
    key = place.gate.key(f"r{uuid.uuid4().hex[:8]}", kind="runner", clusters=(CLUSTER,))
    runner = Runner(place.gate.as_(key), CLUSTER)
    while left := runner.lease():
        # Of other tests.
        runner.finish(left[0], "FAILED").raise_for_status()
    place.ask(place.ann, "refresh", {"cluster": CLUSTER}).raise_for_status()
    (job,) = runner.lease()
    # The view's own owner, who may write it in every other way, and who may do everything.
    for who in (place.ann.server, place.admin):
        with pytest.raises(OSError, match="version 2"):
            commit(who, place.view, job["id"])
    assert commit(runner.server, place.view, job["id"]) == 2
    runner.finish(job, "FAILED").raise_for_status()


def test_a_refusal_names_only_views_that_may_be_seen(place: Place) -> None:
    place.create().raise_for_status()
    carl = person(place.gate)
    place.gate.grant(carl.name, "owner", "namespace", place.data)

    def drop(**params: str) -> httpx.Response:
        return carl.ask(f"table/{place.data}$t/drop", **params)

    hidden = drop()
    assert (hidden.status_code, hidden.json()["code"]) == (409, 19)
    assert hidden.json()["error"] == f"table {place.data}$t is read by materialized views"
    refused = drop(cascade="true")
    assert refused.json()["code"] == 15
    assert place.home not in refused.text
    whole = carl.ask(f"namespace/{place.data}/drop", {"behavior": "Cascade"}, cascade="true")
    assert whole.json()["code"] == 15

    second = f"materialized_view/{place.home}$w/create"
    query = {"kind": "query", "source_query": f"SELECT id FROM {place.data}.t"}
    place.ann.ask(second, query).raise_for_status()
    place.gate.grant(carl.name, "reader", "table", place.home, "v")
    told = drop().json()["error"]
    assert told == f"table {place.data}$t is read by {place.home}$v and others"
    refused = drop(cascade="true")
    assert refused.status_code == 403
    place.gate.grant(carl.name, "owner", "namespace", place.home)
    assert drop(cascade="true").status_code == 200
    assert place.ask(place.ann, "describe").status_code == 404


@pytest.mark.slow
@pytest.mark.timeout(1000)
def test_the_servers_own_runner_refreshes_a_view(tmp_path: Path) -> None:
    with guarded(tmp_path / "data", runner=True) as gate:
        place = make_place(gate)
        place.gate.grant(place.ann.name, "functions", "namespace", place.home)
        # Its expressions are Spark's.
        query = f"SELECT id, upper(name) AS loud FROM {place.data}.t WHERE id > 1"
        answer = place.create(source_query=query, with_no_data=False)
        assert answer.status_code == 201, answer.text
        finish(place, answer.json()["job_id"])
        assert count(place) == 1
        send(place.admin, f"/v1/table/{place.data}$t/insert", people(3, 4)).raise_for_status()
        answer = place.ask(place.ann, "refresh", {"mode": "incremental"})
        done = finish(place, answer.json()["job_id"])
        assert (done["mode"], done["rows_inserted"]) == ("incremental", "2")
        assert count(place) == 3
        upper = f"materialized_view/{place.home}$w"
        body = {"kind": "query", "source_query": f"SELECT id, loud FROM {place.home}.v"}
        place.ann.ask(f"{upper}/create", body).raise_for_status()
        send(place.admin, f"/v1/table/{place.data}$t/insert", people(5)).raise_for_status()
        answer = place.ann.ask(f"{upper}/refresh", {"cascade": True}).raise_for_status()
        assert finish(place, answer.json()["job_id"])["rows_inserted"] == "4"
        assert count(place) == 4


def finish(place: Place, job: str) -> dict[str, str]:
    """Wait for a job, which must succeed; what is told of it."""

    def look() -> dict[str, Any] | None:
        found: dict[str, Any] = place.ann.ask(f"transaction/{job}/describe").json()
        return None if found["status"] in ("QUEUED", "RUNNING") else found

    found = until(look, "the refresh never ended", seconds=400)
    assert found["status"] == "SUCCEEDED", found
    told: dict[str, str] = found["properties"]
    return told


def count(place: Place) -> int:
    return int(place.ann.ask(f"table/{place.view}/count_rows").raise_for_status().json())


def test_dependents_are_named_to_who_may_read_them(place: Place) -> None:
    place.create().raise_for_status()
    carl = person(place.gate)
    place.gate.grant(carl.name, "owner", "namespace", place.data)

    def ask() -> tuple[list[list[str]], int]:
        told = carl.ask(f"table/{place.data}$t/dependents", {}).json()
        return [each["id"] for each in told["dependents"]], told.get("hidden", 0)

    assert ask() == ([], 1)
    dropped = carl.ask(f"table/{place.data}$t/drop_columns", {"columns": ["id"]})
    assert dropped.json()["error"].endswith("is read by materialized views")
    place.gate.grant(carl.name, "reader", "table", place.home, "v")
    assert ask() == ([[place.home, "v"]], 0)
    body = {"columns": ["id"]}
    refused = carl.ask(f"table/{place.data}$t/drop_columns", body, cascade="true")
    assert (refused.status_code, refused.json()["code"]) == (403, 15)
    assert place.ask(place.ann, "describe").status_code == 200


def test_a_view_is_altered_with_the_rights_of_who_alters_it(place: Place) -> None:
    send(place.admin, f"/v1/table/{place.data}$u/create", people(1)).raise_for_status()
    place.create().raise_for_status()
    other = {"source_query": f"SELECT id FROM {place.data}.u", "cluster": CLUSTER}
    for operation in ("alter", "explain_alter"):
        # What ann may not read is not there for her.
        assert place.ask(place.ann, operation, other).status_code == 400
    bob = person(place.gate)
    place.gate.grant(bob.name, "owner", "table", place.home, "v")
    # Nor does bob get at what only ann may read.
    mine = {"source_query": f"SELECT id, name FROM {place.data}.t", "cluster": CLUSTER}
    assert place.ask(bob, "alter", mine).status_code == 400
    place.gate.grant(bob.name, "reader", "table", place.data, "u")
    job = place.ask(bob, "alter", other)
    assert job.status_code == 202, job.text
    # A right that is revoked before the job begins counts.
    place.gate.ungrant(bob.name, "reader", "table", place.data, "u")
    key = place.gate.key(f"r{uuid.uuid4().hex[:8]}", kind="runner", clusters=(CLUSTER,))
    runner = Runner(place.gate.as_(key), CLUSTER)
    while left := runner.lease():
        assert left[0]["id"] != job.json()["job_id"]
        runner.finish(left[0], "FAILED").raise_for_status()
    assert place.ask(bob, "describe").json()["source_query"] == f"SELECT id FROM {place.data}.t"


def test_altering_a_function_brings_code(place: Place) -> None:
    place.gate.grant(place.ann.name, "functions", "namespace", place.home)
    place.create(**chunker()).raise_for_status()
    place.gate.ungrant(place.ann.name, "functions", "namespace", place.home)
    spec = chunker()["udtf_spec"] | {"udtf_version": "2"}
    new = {"cluster": CLUSTER, "udtf_spec": spec | {"udtf": repack(spec["udtf"]), "udtf_sha": None}}
    refused = place.ask(place.ann, "alter", new)
    assert (refused.status_code, refused.json()["code"]) == (403, 15), refused.text
    # The code that is there needs no right to be brought.
    same = {"cluster": CLUSTER, "inherited": ["id"]}
    assert place.ask(place.ann, "alter", same).status_code in (200, 202)


def repack(text: str) -> str:
    """The same code in an envelope of another hash."""
    told = json.loads(base64.b64decode(text)) | {"version": "2"}
    return base64.b64encode(json.dumps(told).encode()).decode()


def test_a_rename_changes_only_views_that_the_caller_owns(place: Place) -> None:
    place.create().raise_for_status()
    carl = person(place.gate)
    place.gate.grant(carl.name, "owner", "namespace", place.data)

    def rename() -> httpx.Response:
        body = {"alterations": [{"path": "id", "rename": "key"}]}
        return carl.ask(f"table/{place.data}$t/alter_columns", body, cascade="true")

    refused = rename()
    assert (refused.status_code, refused.json()["code"]) == (403, 15)
    assert place.home not in refused.text
    place.gate.grant(carl.name, "owner", "table", place.home, "v")
    assert rename().status_code == 200
    told = place.ask(place.ann, "describe").json()["source_query"]
    assert told == f"SELECT `key` AS `id` FROM {place.data}.t"
