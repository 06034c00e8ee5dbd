"""The same jobs with the catalog in PostgreSQL, while runner or server are killed."""

import contextlib
from collections.abc import Iterator, Mapping

import pytest

from tests.harness.processes import servers
from tests.harness.processes.databases import new_postgres_database
from tests.harness.processes.runners import RunnerProcess, Team, restart
from tests.harness.processes.servers import Server
from tests.runner.conftest import LEASES, SPARK
from tests.runner.test_kills import begun, ends_right
from tests.runner.test_sql_views import check_groups, check_iceberg, check_join

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


def test_a_job_survives_its_server_and_its_runner(
    server: Server, environ: Mapping[str, str], team: Team, pair: list[RunnerProcess]
) -> None:
    table, job = begun(server)
    restart(server, environ=environ)
    team.holder(job).kill()
    found = ends_right(table, job)
    assert found["attempt"] == "2"
    assert int(found["function_calls"]) < 4_000


def test_views_by_spark_sql_are_the_same(server: Server, pair: list[RunnerProcess]) -> None:
    check_join(server)
    check_groups(server)
    check_iceberg(server)
