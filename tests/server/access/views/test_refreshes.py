"""Who may refresh views, and what the runners that do it may read and write."""

import uuid
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.harness.clients.pylance import connect
from tests.harness.data.arrow import people, send
from tests.harness.jobs.fake_runner import Runner
from tests.harness.processes.access import guarded, person
from tests.harness.processes.servers import Server
from tests.harness.processes.waiting import until
from tests.harness.views.server_views import commit_rows
from tests.server.access.conftest import CLUSTER
from tests.server.access.views.conftest import Place, make_place, stack


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
