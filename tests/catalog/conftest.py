"""Jobs, columns and materialized views over HTTP: two servers for all tests, a cluster for each."""

import itertools
import json
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from tests.harness.clients.idempotency_keys import query
from tests.harness.jobs.fake_runner import CLUSTERS, Column, make_column
from tests.harness.processes import servers
from tests.harness.processes.databases import KINDS, database_of, sqlite_url
from tests.harness.processes.servers import Server

_names = itertools.cycle(CLUSTERS)
ENVIRON = {"PENSTOCK__CLUSTERS": json.dumps(CLUSTERS)}
# Leases last long enough to report on a busy machine; a test need not wait for their end.
HASTY = ENVIRON | {"PENSTOCK__JOBS__LEASE_SECONDS": "3", "PENSTOCK__JOBS__MAX_ATTEMPTS": "2"}


@pytest.fixture(scope="session", params=KINDS)
def server(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Server]:
    """A running server, on each kind of database in turn."""
    with servers.running(
        tmp_path_factory.mktemp("data"), database=database_of(request), environ=ENVIRON
    ) as started:
        yield started


@dataclass(frozen=True)
class Hasty:
    """A running server whose leases last three seconds, and which gives a job two chances."""

    server: Server
    database: str

    def fall_silent(self, id: str) -> None:
        """Let the lease of a job be over, as if its runner had not reported for long."""
        query(self.database, [f"UPDATE jobs SET lease_until = 1 WHERE id = '{id}'"])


@pytest.fixture(scope="session", params=KINDS)
def hasty(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Hasty]:
    data, database = tmp_path_factory.mktemp("data"), database_of(request)
    with servers.running(data, database=database, environ=HASTY) as started:
        yield Hasty(started, database or sqlite_url(data))


@pytest.fixture
def cluster() -> str:
    return next(_names)


@pytest.fixture
def column(server: Server, cluster: str) -> Column:
    """The column `len` of a new table with three texts, computed and not filled yet."""
    return make_column(server, cluster)
