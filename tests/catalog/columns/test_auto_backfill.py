"""Columns that fill themselves: when a backfill is requested, and that there is only one."""

import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from penstock.catalog.columns.auto_backfill import StaleColumn
from penstock.catalog.jobs.due import MAX_UNCHANGED_MILLIS, PastJob, TriggerRules, plan_due
from penstock.model.tables import Table
from tests.harness.data.arrow import send
from tests.harness.data.functions import virtual_column
from tests.harness.jobs.fake_runner import TEXTS, Runner, cancel, describe, make_table
from tests.harness.processes import servers
from tests.harness.processes.databases import EITHER, database_of, new_postgres_database
from tests.harness.processes.servers import Server
from tests.harness.processes.waiting import until

ENVIRON = {
    "PENSTOCK__AUTO_BACKFILL__COOLDOWN_SECONDS": "0",
    "PENSTOCK__JOBS__LEASE_SECONDS": "120",
}
# Long enough for two looks, were they to request something.
QUIET_SECONDS = 0.8
TABLE = Table("t", ("ns",), "t", "/t", True, {})
RULES = TriggerRules(changes=1, cooldown_seconds=5)
STALE = StaleColumn(TABLE, "", "c", "b", 3, 5, 10_000, 20_000, ())


def after(*jobs: PastJob, **fields: Any) -> int | None:
    return plan_due(replace(STALE, jobs=jobs, **fields), RULES)


def test_what_fails_waits_even_without_a_cooldown() -> None:
    rules = TriggerRules(cooldown_seconds=0)
    failed = PastJob("FAILED", 30_000, 31_000)
    assert plan_due(replace(STALE, jobs=(failed,)), rules) == 33_000
    assert plan_due(replace(STALE, jobs=(failed,) * 3), rules) == 39_000
    assert plan_due(replace(STALE, jobs=(PastJob("SUCCEEDED", 1, 31_000),)), rules) == 31_000


def test_a_column_is_due_a_cooldown_after_the_first_change() -> None:
    assert plan_due(STALE, RULES) == 15_000


def test_a_column_is_due_a_cooldown_after_its_last_job() -> None:
    assert after(PastJob("SUCCEEDED", 8_000, 9_000)) == 15_000
    assert after(PastJob("SUCCEEDED", 8_000, 40_000)) == 45_000


def test_a_column_with_a_job_is_not_due() -> None:
    assert after(PastJob("QUEUED", 1, None)) is None
    assert after(PastJob("RUNNING", 1, None)) is None
    assert after(PastJob("PAUSED", 1, None)) is None


def test_a_column_that_was_found_fresh_is_not_due_before_a_change() -> None:
    assert after(PastJob("SUCCEEDED", 30_000, 40_000, fresh_at=5)) is None
    assert after(PastJob("SUCCEEDED", 8_000, 9_000, fresh_at=4)) == 15_000


def test_a_canceled_backfill_is_not_repeated_before_a_change() -> None:
    assert after(PastJob("CANCELED", 30_000, 31_000)) is None
    assert after(PastJob("CANCELED", 11_000, 12_000)) == 17_000


def test_failures_are_repeated_later_and_later() -> None:
    failed = PastJob("FAILED", 30_000, 31_000)
    assert after(failed) == 31_000 + 10_000
    assert after(failed, failed) == 31_000 + 20_000
    assert after(failed, failed, PastJob("SUCCEEDED", 1, 1)) == 31_000 + 20_000
    assert after(*[failed] * 10) == 31_000 + MAX_UNCHANGED_MILLIS
    assert after(*[failed] * 10, last_change_at=40_000) == 31_000 + 60_000


@pytest.fixture(scope="module", params=EITHER)
def server(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Server]:
    """A running server with no cool-down."""
    database = database_of(request)
    data = tmp_path_factory.mktemp("data")
    with servers.running(data, database=database, environ=ENVIRON) as started:
        yield started


def length(text: str) -> int:
    return len(text)


def declare(server: Server, table: str, *, auto: bool = True, name: str = "len") -> None:
    outputs = [{"column": name, "struct_field": name, "data_type": {"type": "int64"}}]
    column = virtual_column(length, ["text"], outputs, auto_backfill=auto)
    body = {"new_columns": [{"name": name, "virtual_column": column}]}
    server.post(f"/v1/table/{table}/add_columns", body).raise_for_status()


def list_jobs(server: Server, table: str) -> list[dict[str, Any]]:
    jobs: list[dict[str, Any]] = server.post("/v1/jobs/list", {"target": table}).json()["jobs"]
    return jobs


def wait_for_job(server: Server, table: str, count: int = 1) -> str:
    """Wait until a table has so many jobs; returns the newest."""
    until(lambda: len(list_jobs(server, table)) >= count)
    found = list_jobs(server, table)
    assert len(found) == count
    return str(found[0]["job_id"])


def describe_automatic(server: Server, job: str) -> dict[str, Any]:
    """Describe a job, once it says that nobody asked for it; that is noted after it is queued."""
    until(lambda: "auto_backfill" in describe(server, job))
    found = describe(server, job)
    assert found["auto_backfill"] == "true"
    return found


def finish(server: Server, job: str, state: str = "SUCCEEDED", **body: Any) -> None:
    """Lease what there is, and end this job."""
    runner = Runner(server, "local")
    found = {each["id"]: each for each in runner.lease(free=64)}
    runner.finish(found[job], state, **body).raise_for_status()


def version(server: Server, table: str) -> int:
    body = {"load_detailed_metadata": True}
    return int(server.post(f"/v1/table/{table}/describe", body).json()["version"])


def fill(server: Server, table: str, job: str) -> None:
    """End a job as one that filled everything."""
    now = version(server, table)
    result = {"version": now, "watermark": {"version": now}, "committed_versions": []}
    finish(server, job, result=result)


def test_a_new_column_and_later_rows_are_filled_without_a_request(server: Server) -> None:
    table = make_table(server)
    declare(server, table)
    job = wait_for_job(server, table)
    found = describe_automatic(server, job)
    assert (found["kind"], found["target"]) == ("backfill", f"{table}.len")
    # What comes while it waits is part of it.
    send(server, f"/v1/table/{table}/insert", TEXTS).raise_for_status()
    time.sleep(QUIET_SECONDS)
    assert len(list_jobs(server, table)) == 1
    fill(server, table, job)
    time.sleep(QUIET_SECONDS)
    assert len(list_jobs(server, table)) == 1
    send(server, f"/v1/table/{table}/insert", TEXTS).raise_for_status()
    fill(server, table, wait_for_job(server, table, 2))
    lines = server.get("/metrics").text.splitlines()
    values = {name: value for line in lines for name, _, value in [line.rpartition(" ")]}
    assert float(values["penstock_auto_backfills_total"]) >= 2
    assert 'penstock_columns_stale{auto_backfill="true"}' in values


def test_what_a_job_of_some_rows_left_is_filled_too(server: Server) -> None:
    table = make_table(server)
    declare(server, table)
    fill(server, table, wait_for_job(server, table))
    body = {"column": "len", "where": "id = 1"}
    asked = server.post(f"/v1/table/{table}/backfill_column", body).json()["job_id"]
    now = version(server, table)
    mark = {"version": now, "counts": {"fresh": 1, "stale": 2}}
    finish(server, asked, result={"version": now, "watermark": mark, "committed_versions": [now]})
    job = wait_for_job(server, table, 3)
    describe_automatic(server, job)
    failed = {"version": now, "counts": {"fresh": 2, "failed": 1}}
    result = {"version": now, "watermark": failed, "committed_versions": [now]}
    finish(server, job, result=result)
    time.sleep(QUIET_SECONDS)
    assert len(list_jobs(server, table)) == 3


def test_what_fills_another_column_is_no_change(server: Server) -> None:
    table = make_table(server)
    declare(server, table)
    fill(server, table, wait_for_job(server, table))
    declare(server, table, auto=False, name="other")
    fill(server, table, wait_for_job(server, table, 2))
    asked = server.post(f"/v1/table/{table}/backfill_column", {"column": "other"})
    later = version(server, table) + 1
    result = {"version": later, "watermark": {"version": later}, "committed_versions": [later]}
    finish(server, asked.json()["job_id"], result=result)
    send(server, f"/v1/table/{table}/insert", TEXTS).raise_for_status()
    time.sleep(QUIET_SECONDS)
    assert len(list_jobs(server, table)) == 3
    send(server, f"/v1/table/{table}/insert", TEXTS).raise_for_status()
    wait_for_job(server, table, 4)


def test_a_column_that_sql_computes_fills_itself_too(server: Server) -> None:
    table = make_table(server)
    new = {"name": "up", "computed": "upper(text)", "auto_backfill": True}
    server.post(f"/v1/table/{table}/add_columns", {"new_columns": [new]}).raise_for_status()
    found = describe_automatic(server, wait_for_job(server, table))
    assert found["target"] == f"{table}.up"


def test_a_column_without_the_flag_waits_for_a_request(server: Server) -> None:
    table = make_table(server)
    declare(server, table, auto=False)
    time.sleep(QUIET_SECONDS)
    assert list_jobs(server, table) == []


def test_a_canceled_backfill_stays_canceled_until_something_changes(server: Server) -> None:
    table = make_table(server)
    declare(server, table)
    cancel(server, wait_for_job(server, table)).raise_for_status()
    time.sleep(QUIET_SECONDS)
    assert len(list_jobs(server, table)) == 1
    send(server, f"/v1/table/{table}/insert", TEXTS).raise_for_status()
    wait_for_job(server, table, 2)


def test_a_paused_backfill_piles_up_no_others(server: Server) -> None:
    table = make_table(server)
    declare(server, table)
    body = {"job_id": wait_for_job(server, table)}
    server.post("/v1/jobs/pause", body).raise_for_status()
    send(server, f"/v1/table/{table}/insert", TEXTS).raise_for_status()
    time.sleep(QUIET_SECONDS)
    assert [job["job_id"] for job in list_jobs(server, table)] == [body["job_id"]]


def test_a_request_of_somebody_is_enough(server: Server) -> None:
    table = make_table(server)
    declare(server, table)
    asked = server.post(f"/v1/table/{table}/backfill_column", {"column": "len"})
    time.sleep(QUIET_SECONDS)
    # On a busy machine the column may have been quicker than the request.
    assert list_jobs(server, table)[0]["job_id"] == asked.json()["job_id"]


@pytest.mark.slow
def test_what_was_committed_without_a_server_is_found(
    postgres: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    data, database = tmp_path_factory.mktemp("data"), new_postgres_database(postgres)
    off = ENVIRON | {"PENSTOCK__AUTO_BACKFILL__ENABLED": "false"}
    with servers.running(data, database=database, environ=off) as quiet:
        table = make_table(quiet)
        declare(quiet, table)
        time.sleep(QUIET_SECONDS)
        assert list_jobs(quiet, table) == []
        # Two others look at the same time: one job.
        with (
            servers.running(data, database=database, environ=ENVIRON) as first,
            servers.running(data, database=database, environ=ENVIRON),
        ):
            wait_for_job(first, table)
            time.sleep(QUIET_SECONDS)
            assert len(list_jobs(first, table)) == 1
