"""Previews as clients ask for them: they wait for the job, and are in nobody's way."""

import http.client
import json
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest

from tests.harness.data.tables import code
from tests.harness.jobs.fake_runner import Column, cancel, describe
from tests.harness.processes.waiting import PATIENCE_SECONDS, until

RESULT = {"version": 2, "rows": 1, "values": [], "errors": [], "seconds": 0.5}


def ask(column: Column, /, **body: Any) -> httpx.Response:
    wanted = {"column": column.name, "cluster": column.cluster} | body
    return column.ask("preview_column", wanted)


def ask_and_lease(
    column: Column, /, **body: Any
) -> "tuple[Future[httpx.Response], dict[str, Any]]":
    """Ask for a preview, which waits, and lease its job."""
    pool = ThreadPoolExecutor(1)
    answer = pool.submit(ask, column, **body)
    pool.shutdown(wait=False)
    (job,) = column.runner.lease(wait_seconds=50)
    return answer, job


def test_a_preview_waits_for_its_job(column: Column) -> None:
    answer, job = ask_and_lease(column, rows=3, where="id > 1")
    assert job["kind"] == "preview"
    spec = job["spec"]
    assert (spec["rows"], spec["where"], spec["expression"]) == (3, "id > 1", "length(text)")
    column.runner.finish(job, result=RESULT).raise_for_status()
    assert answer.result(PATIENCE_SECONDS).status_code == 200
    assert answer.result().json() == RESULT | {"job_id": job["id"]}


def test_a_preview_that_takes_longer_answers_with_its_job(column: Column) -> None:
    answer = ask(column, timeout_seconds=0)
    assert answer.status_code == 202
    id = answer.json()["job_id"]
    (listed,) = column.server.post(
        "/v1/jobs/list", {"kind": "preview", "target": column.table}
    ).json()["jobs"]
    assert (listed["job_id"], listed["job_type"]) == (id, "preview")
    (job,) = column.runner.lease()
    column.runner.finish(job, result=RESULT).raise_for_status()
    found = column.server.post("/v1/jobs/describe", {"job_id": id}).json()
    assert (found["job_state"], found["result"]["seconds"]) == ("DONE", 0.5)


def test_a_preview_is_not_paused(column: Column) -> None:
    id = ask(column, timeout_seconds=0).json()["job_id"]
    answer = column.server.post("/v1/jobs/pause", {"job_id": id})
    assert code(answer) == (400, 13)
    assert "cancel it" in answer.json()["detail"]


@pytest.mark.parametrize(("retryable", "status"), [(False, (400, 13)), (True, (503, 17))])
def test_a_preview_that_fails_says_why(
    column: Column, retryable: bool, status: tuple[int, int]
) -> None:
    answer, job = ask_and_lease(column)
    column.runner.finish(job, "FAILED", error="no such thing", retryable=retryable)
    assert code(answer.result(PATIENCE_SECONDS)) == status
    assert "no such thing" in answer.result().json()["error"]


def test_a_preview_that_is_canceled_is_not_made(column: Column) -> None:
    answer, job = ask_and_lease(column)
    cancel(column.server, job["id"]).raise_for_status()
    column.runner.finish(job, "CANCELED").raise_for_status()
    assert code(answer.result(PATIENCE_SECONDS)) == (400, 13)


def test_a_preview_is_in_nobodys_way(column: Column) -> None:
    first = column.request()
    ids = {ask(column, timeout_seconds=0).json()["job_id"] for _ in range(2)}
    second = column.request(force=True)
    leased = {job["id"] for job in column.runner.lease(free=10)}
    assert leased == {first, *ids}
    assert describe(column.server, second)["status"] == "QUEUED"


def test_a_preview_moves_no_watermark(column: Column) -> None:
    ask(column, timeout_seconds=0).raise_for_status()
    (job,) = column.runner.lease()
    result = RESULT | {"watermark": {"version": 2}}
    column.runner.finish(job, result=result).raise_for_status()
    column.request()
    (job,) = column.runner.lease()
    assert job["spec"]["watermark"] is None


def test_a_dropped_table_ends_its_previews(column: Column) -> None:
    answer, job = ask_and_lease(column)
    column.ask("drop").raise_for_status()
    column.runner.finish(job, "CANCELED").raise_for_status()
    assert code(answer.result(PATIENCE_SECONDS)) == (400, 13)


def test_a_client_that_goes_away_cancels_its_preview(column: Column) -> None:
    def has_job(status: str) -> bool:
        body = {"kind": "preview", "target": column.table}
        jobs = column.server.post("/v1/jobs/list", body).json()["jobs"]
        return [job["status"] for job in jobs] == [status]

    client = http.client.HTTPConnection(urlsplit(column.server.url).netloc)
    wanted = {"column": column.name, "cluster": column.cluster}
    path = f"/v1/table/{column.table}/preview_column"
    client.request("POST", path, json.dumps(wanted), {"content-type": "application/json"})
    until(lambda: has_job("QUEUED"))
    client.close()
    until(lambda: has_job("CANCELED"))


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"rows": 0}, (400, 13)),
        ({"rows": 1001}, (400, 13)),
        ({"column": "id"}, (400, 13)),
        ({"column": "none"}, (404, 12)),
        ({"where": "nope > 1"}, (404, 12)),
        ({"branch": "none"}, (404, 22)),
        ({"cluster": "none"}, (400, 13)),
        ({"timeout_seconds": -1}, (400, 13)),
    ],
)
def test_a_preview_that_cannot_be_is_refused(
    column: Column, body: dict[str, Any], status: tuple[int, int]
) -> None:
    assert code(ask(column, **body)) == status
