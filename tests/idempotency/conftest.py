"""Servers whose database the tests may look into, and two that share one."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest

from tests.harness.clients.idempotency_keys import Rows, list_files, read_records
from tests.harness.data.tables import new_name
from tests.harness.processes import servers
from tests.harness.processes.databases import KINDS, database_of, new_postgres_database
from tests.harness.processes.servers import Server

State = tuple[dict[str, Rows], list[str]]


@dataclass(frozen=True)
class Stand:
    server: Server
    database: str


@pytest.fixture(scope="session", params=KINDS)
def stand(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Stand]:
    """A running server and its database, of each kind in turn."""
    data = tmp_path_factory.mktemp("data")
    database = database_of(request)
    with servers.running(data, database=database) as started:
        yield Stand(started, database or f"sqlite:///{data / 'catalog.sqlite'}")


@pytest.fixture
def server(stand: Stand) -> Server:
    return stand.server


@pytest.fixture
def state(stand: Stand) -> Callable[[], State]:
    """Everything that the catalog has on record and on storage."""
    return lambda: (read_records(stand.database), list_files(stand.server.lake))


@dataclass(frozen=True)
class Pair:
    """Two servers on one PostgreSQL and one lake; `pair[n]` takes turns."""

    first: Server
    second: Server
    database: str

    def __getitem__(self, number: int) -> Server:
        return (self.first, self.second)[number % 2]

    def new_namespace(self) -> str:
        name = new_name("ns")
        self.first.post(f"/v1/namespace/{name}/create").raise_for_status()
        return name


@pytest.fixture(scope="session")
def pair(postgres: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    data, database = tmp_path_factory.mktemp("shared"), new_postgres_database(postgres)
    with (
        servers.running(data, database=database) as first,
        servers.running(data, database=database) as second,
    ):
        yield Pair(first, second, database)
