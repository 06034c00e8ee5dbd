"""Jobs outlive the server: what waited waits, what ran runs on, and nothing is done twice."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.harness.clients.idempotency_keys import query
from tests.harness.jobs.fake_runner import Runner, describe, make_column
from tests.harness.processes import servers
from tests.harness.processes.databases import EITHER, new_postgres_database, sqlite_url
from tests.harness.processes.servers import Server

# How long a server leaves runners alone after its start, too.
HASTY = {"PENSTOCK__JOBS__LEASE_SECONDS": "1"}


@pytest.fixture(params=EITHER)
def database(request: pytest.FixtureRequest) -> str:
    if request.param == "sqlite":
        return ""
    return new_postgres_database(request.getfixturevalue("postgres"))


@pytest.fixture
def first(tmp_path: Path, database: str) -> Iterator[Server]:
    with servers.running(tmp_path, database=database) as started:
        yield started


def start_again(server: Server, database: str, **environ: str) -> Server:
    return servers.start(server.data, database=database, environ=environ)


def end_leases(server: Server, database: str) -> None:
    query(database or sqlite_url(server.data), ["UPDATE jobs SET lease_until = 1"])


@pytest.mark.parametrize("end", [pytest.param("stop", marks=pytest.mark.slow), "kill"])
def test_jobs_are_there_after_a_restart(first: Server, database: str, end: str) -> None:
    column = make_column(first, "local")
    runs, waits = column.request(), column.request(force=True)
    (job,) = column.runner.lease()
    column.runner.report(job, progress={"rows_done": 1}, logs=[{"text": "hello"}])
    getattr(first, end)()
    again = start_again(first, database)
    try:
        found = describe(again, runs)
        assert (found["status"], found["rows_done"]) == ("RUNNING", "1")
        assert again.get(f"/v1/jobs/{runs}/logs").json()["lines"][0]["text"] == "hello"
        assert describe(again, waits)["status"] == "QUEUED"
        assert Runner(again).finish(job).json() == {"state": "SUCCEEDED"}
        assert [each["id"] for each in Runner(again).lease()] == [waits]
    finally:
        again.stop()


@pytest.mark.slow
def test_a_runner_that_could_not_report_goes_on(first: Server, database: str) -> None:
    column = make_column(first, "local")
    column.request()
    (job,) = column.runner.lease()
    first.kill()
    # Its lease is over, but there was nobody to report to.
    end_leases(first, database)
    again = start_again(first, database)
    try:
        assert Runner(again).report(job).json()["cancel"] is False
        assert Runner(again).finish(job).json() == {"state": "SUCCEEDED"}
    finally:
        again.stop()


def test_a_runner_that_died_with_the_server_is_replaced(first: Server, database: str) -> None:
    column = make_column(first, "local")
    id = column.request()
    column.runner.lease()
    first.kill()
    end_leases(first, database)
    again = start_again(first, database, **HASTY)
    try:
        (job,) = Runner(again).lease(wait_seconds=40)
        assert (job["id"], job["attempt"]) == (id, 2)
    finally:
        again.stop()
