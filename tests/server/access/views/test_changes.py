"""Who may alter and drop views, and the tables that views read."""

import base64
import json
import uuid
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest

from tests.harness.clients.pylance import connect
from tests.harness.data.arrow import people, send
from tests.harness.jobs.fake_runner import Runner
from tests.harness.processes.access import person
from tests.harness.views.server_views import commit_rows
from tests.server.access.conftest import CLUSTER
from tests.server.access.views.conftest import Place, chunker


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
    # An environment is code, too; beside the code that is there, it would run with it.
    evil = chunker()["udtf_spec"] | {"manifest": '{"pip": ["evil==1"]}'}
    other = {"source_query": f"SELECT id, name FROM {place.data}.t WHERE id > 0"}
    refused = place.ask(place.ann, "alter", {"cluster": CLUSTER, "udtf_spec": evil, **other})
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


def test_the_runner_of_a_preview_reads_what_the_altered_view_reads_and_writes_no_view(
    place: Place,
) -> None:
    send(place.admin, f"/v1/table/{place.data}$u/create", people(1)).raise_for_status()
    place.gate.grant(place.ann.name, "functions", "namespace", place.home)
    place.create(**chunker()).raise_for_status()
    key = place.gate.key(f"r{uuid.uuid4().hex[:8]}", kind="runner", clusters=(CLUSTER,))
    runner = Runner(place.gate.as_(key), CLUSTER)
    while left := runner.lease():
        # Of other tests.
        runner.finish(left[0], "FAILED").raise_for_status()
    spec = chunker()["udtf_spec"] | {"udtf_version": "2"}
    new = {"cluster": CLUSTER, "udtf_spec": spec | {"udtf": repack(spec["udtf"]), "udtf_sha": None}}
    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(place.ask, place.ann, "alter", new)
        (job,) = runner.lease(wait_seconds=50)
        assert job["kind"] == "preview"

        def status(table: str, operation: str, body: Any = None) -> int:
            return runner.server.post(f"/v1/table/{table}/{operation}", body).status_code

        source = f"{place.data}$t"
        assert status(source, "describe") == status(place.view, "describe") == 200
        assert status(source, "version/create", {"version": "x"}) == 403
        assert status(f"{place.data}$u", "describe") == 404
        told = {"penstock.job": job["id"], "penstock.attempt": "1"}
        with pytest.raises(OSError, match="version 2"):
            commit_rows(connect(runner.server), place.view, **told)
        runner.finish(job, result={"rows": 1}).raise_for_status()
        assert status(source, "describe") == 404
        assert answer.result().status_code == 202, answer.result().text
