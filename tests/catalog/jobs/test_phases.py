"""The phases of a job: from when to when it waited, ran and was paused."""

from penstock.catalog.jobs.job_events import Event, to_phases
from tests.harness.data.tables import code
from tests.harness.jobs.fake_runner import Column


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


def test_a_listing_can_tell_more_of_each_job(column: Column) -> None:
    id = column.request()
    body = {"table_name": column.table, "detailed": True}
    [job] = column.server.post("/v1/jobs/list", body).json()["jobs"]
    assert (job["job_id"], job["status"], job["max_attempts"] > 0) == (id, "QUEUED", True)
    [plain] = column.server.post("/v1/jobs/list", {"table_name": column.table}).json()["jobs"]
    assert set(plain) < set(job)
