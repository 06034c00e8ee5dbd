"""Leases: reports of the attempt that holds a job count, those of any other change nothing."""

import time
from typing import Any

import pytest

from penstock.model.jobs import retry_pause_millis
from tests.catalog.conftest import Hasty
from tests.harness.data.tables import code
from tests.harness.jobs.fake_runner import Column, Runner, cancel, describe, make_column
from tests.harness.processes.servers import Server
from tests.harness.processes.waiting import until


def lease(column: Column) -> dict[str, Any]:
    (job,) = column.runner.lease(wait_seconds=20)
    return job


def wait_until(server: Server, id: str, status: str) -> dict[str, Any]:
    until(lambda: describe(server, id)["status"] == status, f"it never was {status}")
    return describe(server, id)


def test_progress_is_shown_and_kept(column: Column) -> None:
    column.request()
    job = lease(column)
    progress = {"rows_total": 10, "rows_done": 4, "mode": "full", "reason": "never filled"}
    column.runner.report(job, progress=progress).raise_for_status()
    column.runner.report(job, progress={"rows_done": 7.0}).raise_for_status()
    found = describe(column.server, job["id"])
    assert (found["rows_total"], found["rows_done"]) == ("10", "7")
    assert (found["mode"], found["reason"]) == ("full", "never filled")


def test_a_finish_is_the_end(column: Column) -> None:
    column.request()
    job = lease(column)
    result = {"version": 7}
    answer = column.runner.finish(job, result=result, progress={"rows_done": 3})
    assert answer.json() == {"state": "SUCCEEDED"}
    found = describe(column.server, job["id"])
    assert (found["status"], found["version"], found["rows_done"]) == ("SUCCEEDED", "7", "3")
    assert int(found["finished_at"]) >= int(found["started_at"])


def test_a_permanent_error_is_not_tried_again(column: Column) -> None:
    column.request()
    job = lease(column)
    answer = column.runner.finish(job, "FAILED", error="no function 'foo'")
    assert answer.json() == {"state": "FAILED"}
    assert describe(column.server, job["id"])["error"] == "no function 'foo'"
    assert column.runner.lease() == []


def test_a_retryable_error_is_tried_again_after_a_pause(column: Column) -> None:
    column.request()
    job = lease(column)
    failed = time.monotonic()
    answer = column.runner.finish(job, "FAILED", error="the store is gone", retryable=True)
    assert answer.json() == {"state": "QUEUED"}
    again = lease(column)
    assert time.monotonic() - failed >= retry_pause_millis(1) / 1000
    assert (again["id"], again["attempt"]) == (job["id"], 2)
    assert "error" not in describe(column.server, job["id"])


def test_the_last_attempt_is_the_end(hasty: Hasty, cluster: str) -> None:
    column = make_column(hasty.server, cluster)
    column.request()
    for state in ("QUEUED", "FAILED"):
        job = lease(column)
        answer = column.runner.finish(job, "FAILED", error="again", retryable=True)
        assert answer.json() == {"state": state}
    assert describe(hasty.server, job["id"])["error"] == "again"


def test_a_job_that_is_given_back_keeps_its_chances(hasty: Hasty, cluster: str) -> None:
    column = make_column(hasty.server, cluster)
    id = column.request()
    for attempt in range(1, 6):
        (job,) = column.runner.lease()
        assert (job["id"], job["attempt"]) == (id, attempt)
        answer = column.runner.finish(job, "QUEUED", error="the runner was stopped")
        assert answer.json() == {"state": "QUEUED"}
        assert column.runner.finish(job, "QUEUED").json() == {"state": "QUEUED"}
        assert code(column.runner.report(job)) == (409, 14)
    (job,) = column.runner.lease()
    assert column.runner.finish(job).json() == {"state": "SUCCEEDED"}


def test_a_canceled_job_that_is_given_back_is_canceled(column: Column) -> None:
    id = column.request()
    job = lease(column)
    cancel(column.server, id).raise_for_status()
    assert column.runner.finish(job, "QUEUED").json() == {"state": "CANCELED"}


def test_a_failure_after_a_cancel_is_a_cancel(column: Column) -> None:
    id = column.request()
    job = lease(column)
    cancel(column.server, id).raise_for_status()
    answer = column.runner.finish(job, "FAILED", error="interrupted", retryable=True)
    assert answer.json() == {"state": "CANCELED"}


def test_work_that_was_done_before_the_cancel_is_done(column: Column) -> None:
    id = column.request()
    job = lease(column)
    cancel(column.server, id).raise_for_status()
    assert column.runner.finish(job).json() == {"state": "SUCCEEDED"}


@pytest.mark.parametrize("retryable", [True, False])
@pytest.mark.parametrize("state", ["SUCCEEDED", "FAILED", "CANCELED"])
def test_a_finish_can_be_repeated(column: Column, state: str, retryable: bool) -> None:
    column.request()
    job = lease(column)
    body: dict[str, Any] = {"retryable": retryable, "logs": [{"text": "once"}]}
    first = column.runner.finish(job, state, **body)
    before = describe(column.server, job["id"])
    second = column.runner.finish(job, state, **body)
    assert (second.status_code, second.json()) == (200, first.json())
    assert describe(column.server, job["id"]) == before
    lines = column.server.get(f"/v1/jobs/{job['id']}/logs").json()["lines"]
    assert [line["text"] for line in lines] == ["once"]


def test_another_end_of_a_finished_attempt_is_refused(column: Column) -> None:
    column.request()
    job = lease(column)
    column.runner.finish(job).raise_for_status()
    assert code(column.runner.finish(job, "FAILED")) == (409, 14)
    assert code(column.runner.report(job)) == (409, 14)
    assert describe(column.server, job["id"])["status"] == "SUCCEEDED"


def test_an_attempt_that_never_was_holds_nothing(column: Column) -> None:
    id = column.request()
    fake = {"id": id, "attempt": 1}
    assert code(column.runner.report(fake)) == (409, 14)
    job = lease(column)
    assert code(column.runner.finish(job | {"attempt": 2})) == (409, 14)
    assert describe(column.server, id)["status"] == "RUNNING"


def test_an_unknown_job_is_said(server: Server) -> None:
    fake = {"id": "none", "attempt": 1}
    assert code(Runner(server).report(fake)) == (404, 10)
    assert code(Runner(server).finish(fake)) == (404, 10)


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"attempt": 0},
        {"attempt": 1, "progress": {"a": [1]}},
        {"attempt": 1, "logs": [{"at": 1}]},
        {"attempt": 1, "logs": "x"},
    ],
)
def test_a_bad_report_is_refused(column: Column, body: Any) -> None:
    column.request()
    job = lease(column)
    path = f"/v1/runner/job/{job['id']}"
    assert code(column.server.post(f"{path}/heartbeat", body)) == (400, 13)
    assert code(column.server.post(f"{path}/finish", {"state": "SUCCEEDED"} | body)) == (400, 13)
    assert code(column.runner.finish(job, "RUNNING")) == (400, 13)


def test_a_silent_runner_loses_its_job_to_the_next(hasty: Hasty, cluster: str) -> None:
    column = make_column(hasty.server, cluster)
    id = column.request()
    lost = lease(column)
    hasty.fall_silent(id)
    again = lease(column)
    assert (again["id"], again["attempt"]) == (id, 2)
    for answer in (
        column.runner.report(lost, progress={"rows_done": 99}),
        column.runner.finish(lost),
    ):
        assert code(answer) == (409, 14)
        assert "attempt 1 does not hold" in answer.json()["error"]
    found = describe(hasty.server, id)
    assert (found["status"], found["attempt"]) == ("RUNNING", "2")
    assert "rows_done" not in found
    assert column.runner.finish(again).json() == {"state": "SUCCEEDED"}


@pytest.mark.slow
def test_a_runner_that_reports_keeps_its_job(hasty: Hasty, cluster: str) -> None:
    column = make_column(hasty.server, cluster)
    column.request()
    job = lease(column)
    end = time.monotonic() + 4.5
    while time.monotonic() < end:
        assert column.runner.report(job).status_code == 200
        time.sleep(0.3)
    assert column.runner.finish(job).json() == {"state": "SUCCEEDED"}


def test_a_job_that_every_runner_leaves_has_failed(hasty: Hasty, cluster: str) -> None:
    column = make_column(hasty.server, cluster)
    id = column.request()
    for _ in range(2):
        lease(column)
        hasty.fall_silent(id)
    found = wait_until(hasty.server, id, "FAILED")
    assert "runner tester stopped reporting on attempt 2 of 2" in found["error"]
    assert "penstock_leases_expired_total 0.0" not in hasty.server.get("/metrics").text


def test_a_canceled_job_of_a_silent_runner_is_canceled(hasty: Hasty, cluster: str) -> None:
    column = make_column(hasty.server, cluster)
    id = column.request()
    lease(column)
    cancel(hasty.server, id).raise_for_status()
    hasty.fall_silent(id)
    wait_until(hasty.server, id, "CANCELED")


def test_what_waits_behind_a_lost_job_waits_on(hasty: Hasty, cluster: str) -> None:
    column = make_column(hasty.server, cluster)
    first, second = column.request(), column.request(force=True)
    assert lease(column)["id"] == first
    hasty.fall_silent(first)
    again = lease(column)
    assert again["id"] == first
    column.runner.finish(again).raise_for_status()
    assert lease(column)["id"] == second


def test_a_runner_in_trouble_gets_no_jobs_and_its_jobs_say_why(column: Column) -> None:
    id = column.request()
    runner = column.runner
    body = {"runner": "troubled", "clusters": [runner.cluster], "trouble": "no Java; install one"}
    assert column.server.post("/v1/runner/lease", body).json() == {"jobs": []}
    assert describe(column.server, id)["waiting"] == (
        f"the runner of cluster {runner.cluster} cannot work: no Java; install one; or start a "
        "runner with `penstock runner` on another machine"
    )
    told = column.server.post("/v1/overview").json()["runners"]
    (ours,) = (each for each in told if each["cluster"] == runner.cluster)
    assert ours == {"cluster": runner.cluster, "alive": False, "trouble": "no Java; install one"}
    assert runner.lease()[0]["id"] == id
    told = column.server.post("/v1/overview").json()["runners"]
    assert {"cluster": runner.cluster, "alive": True, "trouble": None} in told
