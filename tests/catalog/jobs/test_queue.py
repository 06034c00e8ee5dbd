"""Jobs in the queue: who comes first, what counts as the same, what is listed and canceled."""

import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.harness.data.tables import code
from tests.harness.jobs.fake_runner import (
    Column,
    Runner,
    add_computed,
    cancel,
    describe,
    make_column,
)
from tests.harness.processes.servers import Server


def test_a_request_is_a_job_that_waits(column: Column) -> None:
    id = column.request()
    found = describe(column.server, id)
    assert (found["status"], found["kind"]) == ("QUEUED", "backfill")
    assert found["target"] == f"{column.table}.len"
    assert found["attempt"] == "0"
    assert abs(int(found["created_at"]) - time.time() * 1000) < 60_000
    assert not {"started_at", "finished_at", "error", "version"} & found.keys()


def test_a_lease_makes_it_run(column: Column) -> None:
    id = column.request()
    (job,) = column.runner.lease()
    assert (job["id"], job["kind"], job["attempt"]) == (id, "backfill", 1)
    assert job["cluster"] == column.cluster
    assert (job["lease_seconds"], job["heartbeat_seconds"]) == (30, 1)
    found = describe(column.server, id)
    assert (found["status"], found["attempt"]) == ("RUNNING", "1")
    assert int(found["started_at"]) >= int(found["created_at"])


def test_a_job_is_leased_once(column: Column) -> None:
    column.request()
    assert len(column.runner.lease(free=5)) == 1
    assert column.runner.lease(free=5) == []


def test_the_same_request_is_the_same_job_while_it_waits_or_runs(column: Column) -> None:
    first = column.request()
    assert column.request() == first
    (job,) = column.runner.lease()
    assert column.request() == first
    column.runner.finish(job).raise_for_status()
    assert column.request() != first


def test_the_same_request_after_a_cancel_is_another_job(column: Column) -> None:
    first = column.request()
    column.runner.lease()
    cancel(column.server, first).raise_for_status()
    assert column.request() != first


def test_another_request_queues_behind(column: Column) -> None:
    first = column.request()
    second = column.request(where="id > 1")
    assert second != first
    (job,) = column.runner.lease(free=5)
    assert job["id"] == first
    column.runner.finish(job).raise_for_status()
    assert [job["id"] for job in column.runner.lease(free=5)] == [second]


def test_other_columns_run_at_the_same_time(column: Column) -> None:
    add_computed(column.server, column.table, up="upper(text)").raise_for_status()
    ids = [column.request(), column.request(column="up")]
    assert [job["id"] for job in column.runner.lease(free=5)] == ids


def test_no_more_are_leased_than_are_wanted_and_the_oldest_first(column: Column) -> None:
    columns = {f"c{n}": f"id + {n}" for n in range(5)}
    add_computed(column.server, column.table, **columns).raise_for_status()
    ids = [column.request(column=name) for name in columns]
    runner = column.runner
    assert [job["id"] for job in runner.lease(free=2)] == ids[:2]
    assert [job["id"] for job in runner.lease(free=9)] == ids[2:]


def test_a_runner_gets_only_jobs_of_its_clusters(column: Column) -> None:
    id = column.request()
    assert Runner(column.server, "elsewhere").lease(free=5) == []
    assert [job["id"] for job in column.runner.lease()] == [id]


def test_a_runner_of_any_cluster_gets_every_job(column: Column) -> None:
    id = column.request()
    seen: list[str] = []
    # What other tests left comes back when its leases end, and may be more than one answer holds.
    while jobs := Runner(column.server).lease(free=64):
        seen += [job["id"] for job in jobs]
    assert id in seen


def test_a_runner_that_waits_hears_of_a_job_at_once(column: Column) -> None:
    took = []
    with ThreadPoolExecutor(1) as threads:
        for _ in range(10):
            waiting = threads.submit(column.runner.lease, 1, 20)
            column.server.wait_for_requests(1)
            requested = time.monotonic()
            id = column.request()
            (job,) = waiting.result()
            took.append(time.monotonic() - requested)
            assert job["id"] == id
            column.runner.finish(job).raise_for_status()
    # At once, and not at the look that comes each second.
    assert min(took) < 0.5


def test_a_runner_that_waits_in_vain_gets_nothing(server: Server, cluster: str) -> None:
    started = time.monotonic()
    assert Runner(server, cluster).lease(wait_seconds=0.5) == []
    assert time.monotonic() - started > 0.4


def test_a_runner_that_went_away_gets_no_job(column: Column) -> None:
    import httpx

    body = {"runner": "gone", "clusters": [column.cluster], "wait_seconds": 20}
    with pytest.raises(httpx.ReadTimeout):
        column.server.client.post("/v1/runner/lease", json=body, timeout=0.5)
    column.server.wait_until_idle()
    id = column.request()
    assert [job["id"] for job in column.runner.lease(wait_seconds=20)] == [id]


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"runner": ""},
        {"runner": "r", "free": 0},
        {"runner": "r", "free": 65},
        {"runner": "r", "wait_seconds": -1},
        {"runner": "r", "wait_seconds": 10_000},
        {"runner": "r", "clusters": "local"},
        {"runner": "r\0"},
    ],
)
def test_a_bad_lease_is_refused(server: Server, body: Any) -> None:
    assert code(server.post("/v1/runner/lease", body)) == (400, 13)


def test_a_job_that_waits_is_canceled_at_once(column: Column) -> None:
    id = column.request()
    answer = cancel(column.server, id)
    assert (answer.status_code, answer.json()["status"]) == (200, "CANCELED")
    assert column.runner.lease() == []
    assert "finished_at" in describe(column.server, id)


def test_a_job_that_runs_is_canceled_by_its_runner(column: Column) -> None:
    id = column.request()
    (job,) = column.runner.lease()
    answer = column.runner.report(job).json()
    assert answer == {"cancel": False, "lease_seconds": 30, "pause": False, "obstacle": ""}
    assert cancel(column.server, id).json()["status"] == "RUNNING"
    assert describe(column.server, id)["cancel_requested"] == "true"
    assert column.runner.report(job).json()["cancel"] is True
    assert column.runner.finish(job, "CANCELED").json() == {"state": "CANCELED"}
    assert describe(column.server, id)["status"] == "CANCELED"


def test_a_cancel_lets_the_next_one_go(column: Column) -> None:
    first, second = column.request(), column.request(force=True)
    cancel(column.server, first).raise_for_status()
    assert [job["id"] for job in column.runner.lease()] == [second]


@pytest.mark.parametrize("state", ["SUCCEEDED", "FAILED", "CANCELED"])
def test_a_cancel_of_a_finished_job_changes_nothing(column: Column, state: str) -> None:
    id = column.request()
    (job,) = column.runner.lease()
    column.runner.finish(job, state).raise_for_status()
    before = describe(column.server, id)
    answer = cancel(column.server, id)
    assert (answer.status_code, answer.json()["status"]) == (200, state)
    assert describe(column.server, id) == before


def listed(server: Server, **body: Any) -> list[str]:
    answer = server.post("/v1/jobs/list", body)
    assert answer.status_code == 200, answer.text
    return [job["job_id"] for job in answer.json()["jobs"]]


def test_jobs_are_listed_by_state_kind_and_target(column: Column) -> None:
    add_computed(column.server, column.table, up="upper(text)").raise_for_status()
    first, second = column.request(), column.request(column="up")
    (job,) = column.runner.lease()
    server, table = column.server, column.table
    assert listed(server, target=table) == [second, first]
    assert listed(server, table_name=table) == [second, first]
    assert listed(server, target=f"{table}.len") == [first]
    assert listed(server, target=table, state="RUNNING") == [first]
    assert listed(server, target=table, state="queued") == [second]
    assert listed(server, target=table, state="in_progress") == [second, first]
    assert listed(server, target=table, kind="backfill") == [second, first]
    assert listed(server, target=table, kind="refresh") == []
    column.runner.finish(job, "FAILED").raise_for_status()
    assert listed(server, target=table, state="failed") == [first]


def test_a_listing_has_pages(column: Column) -> None:
    columns = {f"c{n}": f"id + {n}" for n in range(5)}
    add_computed(column.server, column.table, **columns).raise_for_status()
    ids = [column.request(column=name) for name in columns]
    found: list[list[str]] = []
    body: dict[str, Any] = {"target": column.table, "limit": 2}
    while True:
        page = column.server.post("/v1/jobs/list", body).raise_for_status().json()
        found.append([job["job_id"] for job in page["jobs"]])
        if "page_token" not in page:
            break
        body["page_token"] = page["page_token"]
    assert found == [ids[4:2:-1], ids[2:0:-1], ids[:1]]


def test_a_token_belongs_to_its_listing(column: Column) -> None:
    add_computed(column.server, column.table, up="upper(text)").raise_for_status()
    column.request(), column.request(column="up")
    page = column.server.post("/v1/jobs/list", {"target": column.table, "limit": 1}).json()
    body = {"target": "other", "page_token": page["page_token"]}
    assert code(column.server.post("/v1/jobs/list", body)) == (400, 13)


@pytest.mark.parametrize("body", [{"state": "perhaps"}, {"limit": 0}, {"target": "a\0"}])
def test_a_bad_listing_is_refused(server: Server, body: Any) -> None:
    assert code(server.post("/v1/jobs/list", body)) == (400, 13)


def test_a_dropped_table_ends_its_jobs(server: Server, cluster: str) -> None:
    column = make_column(server, cluster)
    waits = column.request(where="id = 1")
    (job,) = column.runner.lease()
    behind = column.request()
    column.ask("drop").raise_for_status()
    assert describe(server, behind)["status"] == "CANCELED"
    assert "not in the catalog any more" in describe(server, behind)["error"]
    assert column.runner.report(job).json()["cancel"] is True
    assert describe(server, waits)["status"] == "RUNNING"
