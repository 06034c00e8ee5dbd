"""Jobs that are paused and resumed: what waits, what runs, and what others may do meanwhile."""

from typing import Any

import httpx
import pytest

from tests.catalog.conftest import Hasty
from tests.harness.clients.idempotency_keys import HEADER, new_key
from tests.harness.data.tables import code
from tests.harness.jobs.fake_runner import Column, cancel, describe, make_column
from tests.harness.processes.servers import Server
from tests.harness.processes.waiting import until


def ask(server: Server, verb: str, id: str, key: str = "") -> httpx.Response:
    headers = {HEADER: key} if key else {}
    return server.client.post(f"/v1/jobs/{verb}", json={"job_id": id}, headers=headers)


def pause(column: Column, id: str) -> dict[str, Any]:
    found: dict[str, Any] = ask(column.server, "pause", id).raise_for_status().json()
    return found


def resume(column: Column, id: str) -> dict[str, Any]:
    found: dict[str, Any] = ask(column.server, "resume", id).raise_for_status().json()
    return found


def state(column: Column, id: str) -> str:
    return str(describe(column.server, id)["status"])


def paused(column: Column) -> str:
    """A job that has run for a while, and was paused."""
    id = column.request()
    (job,) = column.runner.lease()
    pause(column, id)
    assert column.runner.finish(job, "PAUSED").json() == {"state": "PAUSED"}
    return id


def test_a_job_that_waits_is_paused_at_once_and_not_leased(column: Column) -> None:
    id = column.request()
    assert pause(column, id) == {
        "job_id": id,
        "status": "PAUSED",
        "paused": True,
        "committing": False,
    }
    assert column.runner.lease() == []
    assert pause(column, id)["paused"] is False
    assert resume(column, id) == {
        "job_id": id,
        "status": "QUEUED",
        "resumed": True,
        "still_pausing": False,
    }
    (job,) = column.runner.lease()
    assert (job["id"], job["attempt"]) == (id, 1)


def test_a_runner_hears_of_a_pause_with_its_heartbeat(column: Column) -> None:
    id = column.request()
    (job,) = column.runner.lease()
    assert column.runner.report(job).json()["pause"] is False
    assert pause(column, id)["status"] == "RUNNING"
    assert describe(column.server, id)["pause_requested"] == "true"
    answer = column.runner.report(job).json()
    assert (answer["pause"], answer["cancel"]) == (True, False)
    column.runner.finish(job, "PAUSED", progress={"rows_done": 2}).raise_for_status()
    found = describe(column.server, id)
    assert (found["status"], found["rows_done"]) == ("PAUSED", "2")
    assert not {"pause_requested", "finished_at", "error"} & found.keys()


def test_a_pause_costs_no_attempt(column: Column) -> None:
    id = column.request()
    for number in range(1, 6):
        (job,) = column.runner.lease()
        assert job["attempt"] == number
        pause(column, id)
        column.runner.finish(job, "PAUSED").raise_for_status()
        resume(column, id)
    (job,) = column.runner.lease()
    column.runner.finish(job, "FAILED", retryable=True).raise_for_status()
    assert state(column, id) == "QUEUED"


def test_a_job_that_ends_before_its_runner_hears_of_the_pause_has_ended(column: Column) -> None:
    id = column.request()
    (job,) = column.runner.lease()
    pause(column, id)
    column.runner.finish(job).raise_for_status()
    assert state(column, id) == "SUCCEEDED"


def test_a_failed_attempt_of_a_job_that_is_to_pause_does_not_begin_again(column: Column) -> None:
    id = column.request()
    (job,) = column.runner.lease()
    pause(column, id)
    column.runner.finish(job, "FAILED", error="storage", retryable=True).raise_for_status()
    found = describe(column.server, id)
    assert (found["status"], found["error"]) == ("PAUSED", "storage")
    resume(column, id)
    assert "error" not in describe(column.server, id)
    assert len(column.runner.lease()) == 1


def test_a_runner_that_stops_gives_a_pausing_job_back_as_paused(column: Column) -> None:
    id = column.request()
    (job,) = column.runner.lease()
    pause(column, id)
    assert column.runner.finish(job, "QUEUED").json() == {"state": "PAUSED"}


def test_a_job_that_is_resumed_while_it_pauses_goes_on(column: Column) -> None:
    id = column.request()
    (job,) = column.runner.lease()
    pause(column, id)
    assert resume(column, id) == {
        "job_id": id,
        "status": "RUNNING",
        "resumed": True,
        "still_pausing": False,
    }
    assert column.runner.report(job).json()["pause"] is False
    # Its runner had heard of the pause before.
    assert column.runner.finish(job, "PAUSED").json() == {"state": "QUEUED"}
    assert [each["attempt"] for each in column.runner.lease()] == [2]


def test_a_silent_runner_leaves_a_pausing_job_paused_with_all_its_chances(
    hasty: Hasty, cluster: str
) -> None:
    column = make_column(hasty.server, cluster)
    id = column.request()
    for _ in range(3):
        (job,) = column.runner.lease()
        pause(column, id)
        hasty.fall_silent(id)
        until(lambda: state(column, id) == "PAUSED")
        assert code(column.runner.finish(job)) == (409, 14)
        resume(column, id)
    assert len(column.runner.lease()) == 1


def test_a_paused_job_is_canceled_at_once(column: Column) -> None:
    waiting, begun = column.request(where="id > 1"), ""
    pause(column, waiting)
    begun = paused(column)
    for id in (waiting, begun):
        assert cancel(column.server, id).json()["status"] == "CANCELED"
        assert "finished_at" in describe(column.server, id)
        assert resume(column, id) == {
            "job_id": id,
            "status": "CANCELED",
            "resumed": False,
            "still_pausing": False,
        }
    assert column.runner.lease(free=5) == []


def test_a_cancel_while_a_job_pauses_wins(column: Column) -> None:
    id = column.request()
    (job,) = column.runner.lease()
    pause(column, id)
    cancel(column.server, id).raise_for_status()
    answer = column.runner.report(job).json()
    assert (answer["cancel"], answer["pause"]) == (True, True)
    assert column.runner.finish(job, "PAUSED").json() == {"state": "CANCELED"}


@pytest.mark.parametrize("end", ["SUCCEEDED", "FAILED", "CANCELED"])
def test_a_job_that_has_ended_is_not_paused(column: Column, end: str) -> None:
    id = column.request()
    (job,) = column.runner.lease()
    column.runner.finish(job, end).raise_for_status()
    answer = ask(column.server, "pause", id)
    assert code(answer) == (400, 13)
    assert end in answer.json()["error"]
    assert state(column, id) == end


def test_a_job_that_is_about_to_be_canceled_is_not_paused(column: Column) -> None:
    id = column.request()
    column.runner.lease()
    cancel(column.server, id).raise_for_status()
    answer = ask(column.server, "pause", id)
    assert code(answer) == (400, 13)
    assert "about to be canceled" in answer.json()["error"]


def test_a_job_that_is_not_paused_is_not_resumed(column: Column) -> None:
    id = column.request()
    assert resume(column, id)["resumed"] is False
    column.runner.lease()
    assert resume(column, id) == {
        "job_id": id,
        "status": "RUNNING",
        "resumed": False,
        "still_pausing": False,
    }


def test_others_work_on_the_column_while_a_job_is_paused_and_it_waits_for_them(
    column: Column,
) -> None:
    first = paused(column)
    second, third = column.request(), column.request(where="id > 1")
    assert len({first, second, third}) == 3
    (job,) = column.runner.lease(free=5)
    assert job["id"] == second
    resume(column, first)
    # One at a time, and the job that was resumed last.
    assert column.runner.lease(free=5) == []
    column.runner.finish(job).raise_for_status()
    for id in (third, first):
        (job,) = column.runner.lease(free=5)
        assert job["id"] == id
        column.runner.finish(job).raise_for_status()


def test_the_same_request_is_another_job_while_one_is_about_to_pause(column: Column) -> None:
    id = column.request()
    column.runner.lease()
    pause(column, id)
    other = column.request()
    assert other != id
    assert column.runner.lease(free=5) == []


def test_a_drop_cancels_paused_jobs(column: Column) -> None:
    id = paused(column)
    column.ask("drop").raise_for_status()
    assert state(column, id) == "CANCELED"


def test_a_repeated_pause_does_not_undo_a_resume(column: Column) -> None:
    id, key = column.request(), new_key()
    first = ask(column.server, "pause", id, key).raise_for_status()
    resume(column, id)
    again = ask(column.server, "pause", id, key).raise_for_status()
    assert again.json() == first.json()
    assert state(column, id) == "QUEUED"


def test_pauses_are_listed_and_told(column: Column) -> None:
    id = paused(column)
    server = column.server
    (entry,) = server.post("/v1/jobs/list", {"target": column.table, "state": "paused"}).json()[
        "jobs"
    ]
    assert (entry["job_id"], entry["state"], entry["status"]) == (id, "paused", "PAUSED")
    body = {"target": column.table, "state": "in_progress"}
    assert server.post("/v1/jobs/list", body).json()["jobs"] == []
    found = server.post("/v1/jobs/describe", {"job_id": id}).json()
    assert (found["job_state"], found["status"]["attempt"]) == ("PAUSED", "1")
    assert 'penstock_jobs{state="paused"}' in server.get("/metrics").text.lower()


def test_a_stream_goes_on_while_a_job_is_paused(column: Column) -> None:
    id = paused(column)
    with column.server.client.stream("GET", f"/v1/jobs/{id}/events", timeout=30) as stream:
        lines = stream.iter_lines()
        assert next(lines) == "event: progress"
        assert '"status":"PAUSED"' in next(lines)
        resume(column, id)
        (job,) = column.runner.lease()
        column.runner.finish(job).raise_for_status()
        rest = "".join(lines)
    assert "event: end" in rest
    assert '"status":"SUCCEEDED"' in rest
