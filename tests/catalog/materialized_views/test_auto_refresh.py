"""Views that refresh themselves: when a refresh is requested, and that there is only one."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.harness.data.arrow import send
from tests.harness.jobs.fake_runner import TEXTS, describe, make_table
from tests.harness.processes import servers
from tests.harness.processes.databases import EITHER, database_of
from tests.harness.processes.servers import Server
from tests.harness.processes.waiting import until
from tests.harness.views.server_views import (
    View,
    ask_create,
    head,
    make_iceberg_view,
    make_view,
)

ENVIRON = {
    "PENSTOCK__AUTO_REFRESH__COOLDOWN_SECONDS": "0",
    "PENSTOCK__JOBS__LEASE_SECONDS": "120",
}
# Long enough for two looks, were they to request something.
QUIET_SECONDS = 0.8
FAR = 100_000


# So many versions that only rows count.
BY_ROWS = ENVIRON | {
    "PENSTOCK__AUTO_REFRESH__CHANGES": "1000",
    "PENSTOCK__AUTO_REFRESH__ROWS": "5",
}


@pytest.fixture(scope="module", params=EITHER)
def server(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Server]:
    with serve(request, tmp_path_factory, ENVIRON) as started:
        yield started


@pytest.fixture(scope="module", params=EITHER)
def counting(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Server]:
    """A server that looks at rows, not at versions."""
    with serve(request, tmp_path_factory, BY_ROWS) as started:
        yield started


@contextmanager
def serve(
    request: pytest.FixtureRequest, factory: pytest.TempPathFactory, environ: dict[str, str]
) -> Iterator[Server]:
    database = database_of(request)
    with servers.running(factory.mktemp("data"), database=database, environ=environ) as started:
        yield started


def list_jobs(view: View) -> list[str]:
    found = view.server.post("/v1/jobs/list", {"target": view.id}).json()["jobs"]
    return [job["job_id"] for job in found]


def wait_for_job(view: View, count: int = 1) -> str:
    return until(lambda: found[0] if len(found := list_jobs(view)) >= count else None)


def finish(view: View) -> None:
    view.finish(view.lease())


def test_a_view_follows_its_table_without_a_request(server: Server) -> None:
    view = make_view(server, "local", auto_refresh=True)
    job = wait_for_job(view)
    # The job is marked right after it is queued.
    assert until(lambda: describe(server, job).get("auto_refresh")) == "true"
    assert describe(server, job)["kind"] == "refresh"
    finish(view)
    time.sleep(QUIET_SECONDS)
    assert len(list_jobs(view)) == 1
    view.insert()
    wait_for_job(view, 2)
    # What comes while it waits is part of it.
    view.insert()
    time.sleep(QUIET_SECONDS)
    assert len(list_jobs(view)) == 2
    finish(view)
    lines = server.get("/metrics").text.splitlines()
    values = {name: value for line in lines for name, _, value in [line.rpartition(" ")]}
    assert float(values["penstock_auto_refreshes_total"]) >= 2
    assert 'penstock_views_stale{auto_refresh="true"}' in values


def test_a_view_without_the_flag_waits_for_a_request(server: Server) -> None:
    view = make_view(server, "local")
    time.sleep(QUIET_SECONDS)
    assert list_jobs(view) == []
    view.ask("alter", {"auto_refresh": True}).raise_for_status()
    view.insert()
    wait_for_job(view)
    finish(view)


def test_a_view_follows_a_name_in_an_iceberg_view(server: Server) -> None:
    source = make_table(server)
    namespace, _, name = source.partition("$")
    view = View(server, source, f"{namespace}$v", "local")
    make_iceberg_view(server, namespace, "i", f"SELECT id FROM {name}")
    body = {"source_query": "SELECT id FROM i", "auto_refresh": True}
    ask_create(server, view.id, **body).raise_for_status()
    wait_for_job(view)
    finish(view)
    path = f"/v1/table/{view.source}/rename"
    new = {"new_table_name": "old"}
    server.client.post(path, json=new, params={"force": "true"}).raise_for_status()
    time.sleep(QUIET_SECONDS)
    assert len(list_jobs(view)) == 1
    send(server, f"/v1/table/{view.source}/create", TEXTS).raise_for_status()
    wait_for_job(view, 2)
    # What becomes of a job that somebody cancels is left to the next change.
    server.post("/v1/jobs/cancel", {"job_id": list_jobs(view)[0]}).raise_for_status()
    server.client.post(path, json={"new_table_name": "new"}, params={"force": "true"})
    send(server, f"/v1/table/{view.source}/create", TEXTS).raise_for_status()
    wait_for_job(view, 3)
    view.ask("drop").raise_for_status()


def test_a_paused_refresh_piles_up_no_others(server: Server) -> None:
    view = make_view(server, "local", auto_refresh=True)
    body = {"job_id": wait_for_job(view)}
    server.post("/v1/jobs/pause", body).raise_for_status()
    for _ in range(3):
        view.insert()
    time.sleep(QUIET_SECONDS)
    assert list_jobs(view) == [body["job_id"]]
    server.post("/v1/jobs/resume", body).raise_for_status()
    finish(view)


def count_stale(server: Server) -> int:
    """How many views wait for a request and are behind, as the metrics have it."""
    lines = server.get("/metrics").text.splitlines()
    (line,) = [each for each in lines if each.startswith('penstock_views_stale{auto_refresh="fa')]
    return int(float(line.rpartition(" ")[2]))


def test_the_metrics_count_views_that_are_behind(server: Server) -> None:
    before = count_stale(server)
    view = make_view(server, "local")
    assert count_stale(server) == before + 1
    view.refresh()
    assert count_stale(server) == before
    view.insert()
    assert count_stale(server) == before + 1
    view.refresh()


def test_a_target_lag_is_time_that_a_view_may_take(server: Server) -> None:
    view = make_view(server, "local", target_lag_seconds=FAR)
    view.insert()
    time.sleep(QUIET_SECONDS)
    assert list_jobs(view) == []
    view.ask("alter", {"target_lag_seconds": 1}).raise_for_status()
    wait_for_job(view)
    finish(view)


def test_no_auto_refresh_stops_a_target_lag_too(server: Server) -> None:
    view = make_view(server, "local", target_lag_seconds=1)
    wait_for_job(view)
    finish(view)
    view.ask("alter", {"auto_refresh": False}).raise_for_status()
    assert "target_lag_seconds" not in view.tell()
    view.insert()
    # Longer than the lag was.
    time.sleep(1 + QUIET_SECONDS)
    assert len(list_jobs(view)) == 1
    # A lag that is sent with it is meant, and a schedule is a matter of its own.
    both = {"auto_refresh": False, "target_lag_seconds": FAR, "refresh_schedule": "0 6 * * *"}
    view.ask("alter", both).raise_for_status()
    assert view.tell()["target_lag_seconds"] == str(FAR)
    view.ask("alter", {"auto_refresh": False}).raise_for_status()
    assert view.tell()["refresh_schedule"] == "0 6 * * *"


def test_enough_rows_do_as_well_as_enough_versions(counting: Server) -> None:
    # Three rows are too few, in a view that was never filled, too.
    view = make_view(counting, "local", auto_refresh=True)
    for jobs in (1, 2):
        time.sleep(QUIET_SECONDS)
        assert len(list_jobs(view)) == jobs - 1
        view.insert()
        if jobs == 2:
            time.sleep(QUIET_SECONDS)
            assert len(list_jobs(view)) == 1
            view.insert()
        wait_for_job(view, jobs)
        finish(view)


def test_changes_of_columns_that_a_view_does_not_read_are_no_rows(counting: Server) -> None:
    view = make_view(counting, "local", auto_refresh=True)
    view.insert()
    wait_for_job(view)
    finish(view)
    column = {"name": "more", "expression": "id * 2"}
    path = f"/v1/table/{view.source}/add_columns"
    counting.post(path, {"new_columns": [column]}).raise_for_status()
    time.sleep(QUIET_SECONDS)
    assert view.tell()["stale"] == "true"
    assert len(list_jobs(view)) == 1


def test_a_target_lag_is_kept_whatever_the_thresholds(counting: Server) -> None:
    view = make_view(counting, "local", target_lag_seconds=1)
    wait_for_job(view)
    finish(view)


TIMED = "SELECT id, text FROM t WHERE id < day(current_date())"


def finish_at(view: View, moment: int) -> None:
    """End a refresh as one at a moment, in milliseconds."""
    job = view.lease()
    source = job["spec"]["definition"]["sources"][0]["id"]
    versions = {source: head(view.server, view.source)}
    mark = {"versions": versions, "digest": "d", "view_version": 2, "moment": moment * 1000}
    view.finish(job, watermark=mark)


def test_a_view_that_reads_the_clock_follows_time_within_its_target_lag(server: Server) -> None:
    view = make_view(server, "local", target_lag_seconds=1, source_query=TIMED)
    for count in (1, 2, 3):
        wait_for_job(view, count)
        finish_at(view, int(time.time() * 1000))
    told = view.tell()
    assert (told["stale"], told["moment"][:2], told["late"]) == ("true", "20", "false")
    assert float(told["lag_seconds"]) < FAR
    # So that it asks no more.
    view.ask("drop").raise_for_status()


def test_without_a_target_lag_time_alone_counts_after_an_hour(server: Server) -> None:
    view = make_view(server, "local", auto_refresh=True, source_query=TIMED)
    wait_for_job(view)
    finish_at(view, int(time.time() * 1000) - 3_500_000)
    time.sleep(QUIET_SECONDS)
    assert len(list_jobs(view)) == 1
    view.insert()
    wait_for_job(view, 2)
    finish_at(view, int(time.time() * 1000) - 3_601_000)
    wait_for_job(view, 3)
    finish_at(view, int(time.time() * 1000))
