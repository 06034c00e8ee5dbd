"""What the tests of the protocol share: two servers for all of them, and tables of their own."""

from collections.abc import Iterator

import pytest

from tests.harness.data.tables import Table, declare
from tests.harness.processes import servers
from tests.harness.processes.databases import KINDS, database_of, new_postgres_database
from tests.harness.processes.servers import Server

Pair = tuple[Server, Server]


@pytest.fixture(scope="session", params=KINDS)
def server(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Server]:
    """A running server, on each kind of database in turn; each test has a namespace of its own."""
    data = tmp_path_factory.mktemp("data")
    with servers.running(data, database=database_of(request)) as started:
        yield started


@pytest.fixture(scope="session")
def pair(postgres: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    """Two servers that share one PostgreSQL and one lake."""
    data, database = tmp_path_factory.mktemp("shared"), new_postgres_database(postgres)
    with (
        servers.running(data, database=database) as first,
        servers.running(data, database=database) as second,
    ):
        yield first, second


@pytest.fixture
def table(server: Server, namespace: str) -> Table:
    """A declared table in a namespace of its own, with managed versions and none yet."""
    return declare(server, f"{namespace}$t")


@pytest.fixture
def tables(server: Server, namespace: str) -> list[Table]:
    """Three tables with one version each."""
    found = [declare(server, f"{namespace}$t{n}") for n in range(3)]
    for table in found:
        table.commit(1)
    return found
