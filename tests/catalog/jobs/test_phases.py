"""The phases of a job: from when to when it waited, ran and was paused."""

from penstock.catalog.jobs.job_events import MAX_STEPS, Event, to_phases
from tests.harness.data.tables import code
from tests.harness.jobs.fake_runner import Column, describe


def events(*states: str) -> list[Event]:
    return [Event("j", n, n * 10, state, n, "", "") for n, state in enumerate(states)]


def phases(*states: str) -> list[tuple[str, int, int | None]]:
    return [(each.name, each.since, each.until) for each in to_phases(events(*states))]


def test_each_phase_lasts_until_the_next() -> None:
    assert phases("QUEUED", "RUNNING", "PAUSED", "QUEUED", "RUNNING", "SUCCEEDED") == [
        ("queued", 0, 10),
        ("running", 10, 20),
        ("paused", 20, 30),
        ("queued", 30, 40),
        ("running", 40, 50),
    ]


def test_a_phase_that_goes_on_has_no_end() -> None:
    assert phases("QUEUED", "RUNNING") == [("queued", 0, 10), ("running", 10, None)]
    assert phases() == []


def test_what_was_only_asked_for_is_no_phase() -> None:
    assert phases("QUEUED", "RUNNING", "CANCEL_REQUESTED", "CANCELED") == [
        ("queued", 0, 10),
        ("running", 10, 30),
    ]


def test_a_job_tells_its_phases(column: Column) -> None:
    id = column.request()
    told = column.server.get(f"/v1/jobs/{id}/phases").json()
    assert [(each["name"], "to" in each) for each in told["phases"]] == [("queued", False)]
    column.server.post("/v1/jobs/cancel", {"job_id": id}).raise_for_status()
    told = column.server.get(f"/v1/jobs/{id}/phases").json()
    assert [(each["name"], "to" in each) for each in told["phases"]] == [("queued", True)]
    assert [each["state"] for each in told["events"]] == ["QUEUED", "CANCELED"]
    assert code(column.server.get("/v1/jobs/none/phases"))[0] == 404


def test_a_run_tells_what_was_done_in_it_by_the_servers_clock(column: Column) -> None:
    id = column.request()
    [job] = column.runner.lease()
    begun = [{"name": "planning", "ago_millis": 900_000}, {"name": "computing", "ago_millis": 20}]
    column.runner.report(job, phases=begun).raise_for_status()
    column.runner.report(job, phases=[{"name": "computing"}]).raise_for_status()
    [_, run] = column.server.get(f"/v1/jobs/{id}/phases").json()["phases"]
    planning, computing = run["steps"]
    # It began before the run, by its own clock.
    assert (planning["name"], planning["from"]) == ("planning", run["from"])
    assert planning["to"] == computing["from"] >= run["from"] - 20
    assert "to" not in computing
    last = [{"name": "committing ns$other", "ago_millis": 5}]
    column.runner.finish(job, result={"version": 2}, phases=last).raise_for_status()
    told = column.server.get(f"/v1/jobs/{id}/phases").json()
    committing = told["phases"][1]["steps"][2]
    assert (committing["name"], committing["view"]) == ("committing", "ns$other")
    assert committing["to"] == told["phases"][1]["to"]
    assert {each["state"] for each in told["events"]} == {"QUEUED", "RUNNING", "SUCCEEDED"}
    events = column.server.post("/v1/jobs/query_events", {"job_id": id})
    assert b"computing" not in events.content


def test_an_attempt_that_fell_silent_waits_in_the_queue_again() -> None:
    found = phases("QUEUED", "RUNNING", "LEASE_EXPIRED", "RUNNING", "SUCCEEDED")
    assert [name for name, _, _ in found] == ["queued", "running", "queued", "running"]


def test_a_job_that_does_too_much_tells_the_first_of_it(column: Column) -> None:
    id = column.request()
    [job] = column.runner.lease()
    for at in range(3):
        begun = [{"name": f"part{at}x{n}"} for n in range(200)]
        column.runner.report(job, phases=begun).raise_for_status()
    [_, run] = column.server.get(f"/v1/jobs/{id}/phases").json()["phases"]
    assert len(run["steps"]) == MAX_STEPS
    assert code(column.runner.report(job, phases=[{"name": ""}]))[0] == 400


def test_only_a_job_that_runs_tells_what_it_is_at(column: Column) -> None:
    id = column.request()
    [job] = column.runner.lease()
    going = {"phase": "computing", "rows_per_second": 2.5, "seconds_left": 8, "rows_done": 5}
    column.runner.report(job, progress=going).raise_for_status()
    told = describe(column.server, id)
    shown = told["phase"], told["rows_per_second"], told["seconds_left"]
    assert shown == ("computing", "2.5", "8")
    column.runner.finish(job, "QUEUED", retryable=True).raise_for_status()
    body = {"table_name": column.table, "detailed": True}
    [listed] = column.server.post("/v1/jobs/list", body).json()["jobs"]
    assert listed["progress"] == {"rows_done": 5}


def test_a_listing_can_tell_more_of_each_job(column: Column) -> None:
    id = column.request()
    body = {"table_name": column.table, "detailed": True}
    [job] = column.server.post("/v1/jobs/list", body).json()["jobs"]
    assert (job["job_id"], job["status"], job["max_attempts"] > 0) == (id, "QUEUED", True)
    [plain] = column.server.post("/v1/jobs/list", {"table_name": column.table}).json()["jobs"]
    assert set(plain) < set(job)
