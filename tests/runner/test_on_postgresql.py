"""The same jobs with the catalog in PostgreSQL: run, killed, paused, and the server with them."""

import contextlib
from collections.abc import Iterator, Mapping

import pytest

from tests.harness import servers
from tests.harness.databases import new_postgres_database
from tests.harness.jobs import describe
from tests.harness.runners import RunnerProcess, Team, restart
from tests.harness.servers import Server
from tests.runner.conftest import LEASES, SPARK
from tests.runner.test_kills import begun, ends_right

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]


@pytest.fixture(scope="module")
def environ(postgres: str) -> Mapping[str, str]:
    return LEASES | {"PENSTOCK__DATABASE__URL": new_postgres_database(postgres)}


@pytest.fixture(scope="module")
def server(
    environ: Mapping[str, str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Server]:
    started = servers.start(tmp_path_factory.mktemp("data"), environ=environ)
    yield started
    with contextlib.suppress(ProcessLookupError):
        started.stop()


@pytest.fixture(scope="module")
def team(server: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Team]:
    found = Team(server, tmp_path_factory.mktemp("runner"), SPARK)
    yield found
    found.stop()


@pytest.fixture
def pair(team: Team) -> list[RunnerProcess]:
    return team.at_least(2)


def test_a_restarted_server_does_not_disturb_a_job(
    server: Server, environ: Mapping[str, str], pair: list[RunnerProcess]
) -> None:
    table, job = begun(server)
    restart(server, environ=environ)
    assert ends_right(table, job)["attempt"] == "1"


def test_a_paused_runner_writes_nothing_after_its_lease_went(
    server: Server, team: Team, pair: list[RunnerProcess]
) -> None:
    table, job = begun(server, rows=5_000, fragments=20)
    paused = team.holder(job)
    paused.pause()
    try:
        found = ends_right(table, job)
        before = table.open().version
    finally:
        paused.resume()
    paused.wait_for("lost its lease|finished by others")
    after = describe(server, job)
    assert (after["status"], after["attempt"]) == ("SUCCEEDED", found["attempt"])
    assert table.open().version == before


def test_a_killed_runner_is_followed_by_another(
    server: Server, team: Team, pair: list[RunnerProcess]
) -> None:
    table, job = begun(server)
    team.holder(job).kill()
    found = ends_right(table, job)
    assert found["attempt"] == "2"
    assert int(found["function_calls"]) < 3_000
