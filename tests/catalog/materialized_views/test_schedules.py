"""Views that are refreshed by the clock: when a refresh is queued, and that there is only one."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.harness.clients.idempotency_keys import query
from tests.harness.data.tables import code
from tests.harness.jobs.fake_runner import describe
from tests.harness.processes import servers
from tests.harness.processes.databases import EITHER, database_of, sqlite_url
from tests.harness.processes.servers import Server
from tests.harness.processes.waiting import until
from tests.harness.views.server_views import View, ask_create, make_view

HOURLY = "0 * * * *"
EVERY_MINUTE = "* * * * *"
DAY_MILLIS = 86_400_000


@pytest.fixture(params=EITHER)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Path, str]:
    """The data folder of a server, and its database if that is not in it."""
    return tmp_path, database_of(request)


@contextmanager
def serve(place: tuple[Path, str]) -> Iterator[Server]:
    data, database = place
    with servers.running(data, database=database) as started:
        yield started


def miss_ticks(place: tuple[Path, str], days: int = 1) -> None:
    """Let the schedules of all views look as if nobody had seen to them for days."""
    data, database = place
    moved = f"done_until = done_until - {days * DAY_MILLIS}"
    query(database or sqlite_url(data), [f"UPDATE refresh_schedules SET {moved}"])


def list_jobs(view: View) -> list[str]:
    found = view.server.post("/v1/jobs/list", {"target": view.id}).json()["jobs"]
    return [job["job_id"] for job in found]


def test_a_tick_queues_one_refresh_on_one_of_two_servers(place: tuple[Path, str]) -> None:
    data, database = place
    with serve(place) as server:
        view = make_view(server, "local", refresh_schedule=HOURLY)
        told = view.tell()
        assert (told["refresh_schedule"], told["refresh_schedule_timezone"]) == (HOURLY, "UTC")
        assert 0 < int(told["next_refresh_at"]) / 1000 - time.time() <= 3600
        time.sleep(0.5)
        assert list_jobs(view) == []
        view.refresh()
        assert len(list_jobs(view)) == 1
        miss_ticks(place, days=3)
        # Both look: the second server from its start on.
        others = [] if not database else [servers.start(data, database=database)]
        job = until(lambda: found[0] if len(found := list_jobs(view)) == 2 else None)
        assert until(lambda: describe(server, job).get("scheduled")) == "true"
        view.insert()
        # A tick while it waits makes no other.
        miss_ticks(place)
        time.sleep(1.5)
        assert len(list_jobs(view)) == 2
        view.finish(view.lease())
        time.sleep(1.5)
        assert len(list_jobs(view)) == 2
        for other in others:
            other.stop()


def test_ticks_that_no_server_saw_are_one_refresh(place: tuple[Path, str]) -> None:
    with serve(place) as server:
        made = make_view(server, "local", refresh_schedule=HOURLY)
    miss_ticks(place, days=7)
    with serve(place) as server:
        view = View(server, made.source, made.id, made.cluster)
        until(lambda: list_jobs(view))
        time.sleep(1)
        assert len(list_jobs(view)) == 1


def test_a_time_zone_that_is_gone_is_only_its_own_views_matter(place: tuple[Path, str]) -> None:
    data, database = place
    with serve(place) as server:
        paris = {"refresh_schedule_timezone": "Europe/Paris"}
        lost = make_view(server, "local", refresh_schedule=HOURLY, **paris)
        other = make_view(server, "local", refresh_schedule=HOURLY)
        change = "timezone = 'Mars/Base' WHERE timezone = 'Europe/Paris'"
        query(database or sqlite_url(data), [f"UPDATE refresh_schedules SET {change}"])
        told = lost.tell()
        assert told["refresh_schedule_timezone"] == "Mars/Base"
        assert "next_refresh_at" not in told
        miss_ticks(place)
        until(lambda: list_jobs(other))
        assert list_jobs(lost) == []


@pytest.fixture(scope="module", params=EITHER)
def server(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Server]:
    data = tmp_path_factory.mktemp("data")
    with servers.running(data, database=database_of(request)) as started:
        yield started


def test_a_schedule_is_altered_and_ended(server: Server) -> None:
    view = make_view(server, "local")
    assert "refresh_schedule" not in view.tell()
    body = {"refresh_schedule": "0 6 * * 1", "refresh_schedule_timezone": "Europe/Berlin"}
    told = view.ask("alter", body).raise_for_status().json()["properties"]
    assert told["penstock.refresh_schedule"] == "0 6 * * 1"
    assert told["penstock.refresh_schedule_timezone"] == "Europe/Berlin"
    view.ask("alter", {"auto_refresh": False}).raise_for_status()
    assert view.tell()["refresh_schedule"] == "0 6 * * 1"
    view.ask("alter", {"refresh_schedule": HOURLY}).raise_for_status()
    assert view.tell()["refresh_schedule_timezone"] == "UTC"
    view.ask("alter", {"refresh_schedule": None}).raise_for_status()
    assert "refresh_schedule" not in view.tell()
    assert list_jobs(view) == []


BAD: list[dict[str, Any]] = [
    {"refresh_schedule": "daily"},
    {"refresh_schedule": ""},
    {"refresh_schedule": "* * * * * *"},
    {"refresh_schedule": "0 6 * * *", "refresh_schedule_timezone": "../etc/passwd"},
    {"refresh_schedule_timezone": "Europe/Berlin"},
    {"refresh_schedule": 7},
    {"refresh_schedule": "\x00 6 * * *"},
]


@pytest.mark.parametrize("body", BAD)
def test_a_bad_schedule_changes_nothing(server: Server, body: dict[str, Any]) -> None:
    view = make_view(server, "local", refresh_schedule=HOURLY)
    answers = [view.ask("alter", body), ask_create(server, f"{view.namespace}$w", **body)]
    for answer in answers:
        assert code(answer) == (400, 13)
        assert "refresh_schedule" in answer.json()["error"]
    assert view.tell()["refresh_schedule"] == HOURLY
    assert code(server.post(f"/v1/table/{view.namespace}$w/describe")) == (404, 4)


@pytest.mark.slow
def test_a_view_is_refreshed_every_minute(tmp_path: Path) -> None:
    with servers.running(tmp_path) as server:
        view = make_view(server, "local", refresh_schedule=EVERY_MINUTE)
        job = until(lambda: next(iter(list_jobs(view)), None), seconds=90)
        assert describe(server, job)["kind"] == "refresh"
