"""A server that dies while a view is altered: old or new, and the next attempt finishes."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from penstock.errors import LeaseLost
from penstock.jobs.refresh.cascade import run_refreshes
from penstock.jobs.specs import RefreshSpec
from penstock.lance.session.remote import RemoteCatalog
from tests.harness.clients.idempotency_keys import query
from tests.harness.jobs.fake_runner import Runner, describe
from tests.harness.jobs.held_attempt import HeldAttempt
from tests.harness.jobs.local_engine import LOCAL_ENGINE
from tests.harness.processes import servers
from tests.harness.processes.databases import EITHER, database_of, sqlite_url
from tests.harness.processes.servers import Server
from tests.harness.views.server_views import QUERY, View, make_view, run_here

WIDER = "SELECT id, text, id AS again FROM t"
OLD, NEW = [(2, "bb"), (3, "ccc")], [(1, "a", 1), (2, "bb", 2), (3, "ccc", 3)]


@pytest.fixture(params=EITHER)
def database(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return database_of(request) or sqlite_url(tmp_path)


@pytest.fixture
def start(request: pytest.FixtureRequest, tmp_path: Path, database: str) -> Callable[..., Server]:
    def run(crash_at: str = "") -> Server:
        # A server that has just started waits for so long before it takes jobs away.
        environ = {"PENSTOCK_CRASH_AT": crash_at, "PENSTOCK__JOBS__LEASE_SECONDS": "3"}
        server = servers.start(tmp_path, database=database, environ=environ)
        request.addfinalizer(server.process.kill)
        return server

    return run


def die_in(server: Server, job: dict[str, object], *, before_commit: bool) -> None:
    """Carry out a job until its server is dead."""

    def look() -> None:
        if before_commit:
            server.kill()
        if server.process.poll() is not None:
            raise LeaseLost("the server is dead")

    attempt = HeldAttempt(job=str(job["id"]), number=1, on_fence=look)
    spec = msgspec.convert(job["spec"], RefreshSpec)
    with pytest.raises(LeaseLost):
        run_refreshes(spec, RemoteCatalog(server.url), lambda of=None: LOCAL_ENGINE, attempt)


def lease_again(server: Server, database: str, id: str) -> dict[str, Any]:
    """Lease a job whose runner is gone."""
    for _ in range(30):
        query(database, [f"UPDATE jobs SET lease_until = 1 WHERE id = '{id}' AND attempt = 1"])
        if leased := Runner(server).lease(wait_seconds=2):
            return leased[0]
    raise AssertionError("the job was not leased again")


@pytest.mark.parametrize("point", [pytest.param("", marks=pytest.mark.slow), "version recorded"])
def test_the_view_is_the_old_or_the_new_one(
    start: Callable[..., Server], database: str, point: str
) -> None:
    server = start()
    view = make_view(server, "local")
    view.work_all()
    id = view.alter(source_query=WIDER).raise_for_status().json()["job_id"]
    server.stop()
    dying = start(point)
    (job,) = Runner(dying).lease()
    die_in(dying, job, before_commit=not point)
    server = start()
    view = View(server, view.source, view.id, view.cluster)
    # Rows and definition belong together, whoever finishes.
    found = (view.tell()["source_query"], view.rows())
    assert found == ((WIDER, NEW) if point else (QUERY, OLD))
    again = lease_again(server, database, id)
    assert (again["id"], again["attempt"]) == (id, 2)
    run_here(server, again)
    assert (view.tell()["source_query"], view.rows()) == (WIDER, NEW)
    assert describe(server, id)["status"] == "SUCCEEDED"
    assert [each["edition"] for each in view.ask("history").json()["definitions"]] == [1, 0]
    view.insert()
    view.work_all()
    assert len(view.rows()) == 6
