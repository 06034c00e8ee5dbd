"""What the tests of jobs share: two servers for all of them, and a cluster for each test."""

import itertools
import json
from collections.abc import Iterator

import pytest

from tests.harness import servers
from tests.harness.databases import KINDS, new_postgres_database
from tests.harness.jobs import CLUSTERS, Column, make_column
from tests.harness.servers import Server

_names = itertools.cycle(CLUSTERS)
ENVIRON = {"PENSTOCK__CLUSTERS": json.dumps(CLUSTERS)}
# A runner that is silent for a second has lost its job.
HASTY = ENVIRON | {"PENSTOCK__JOBS__LEASE_SECONDS": "1", "PENSTOCK__JOBS__MAX_ATTEMPTS": "2"}


@pytest.fixture(scope="session", params=KINDS)
def server(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Server]:
    """A running server, on each kind of database in turn."""
    with servers.running(
        tmp_path_factory.mktemp("data"), database=_database(request), environ=ENVIRON
    ) as started:
        yield started


@pytest.fixture(scope="session", params=KINDS)
def hasty(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Server]:
    """A running server whose leases last a second, and which gives a job two chances."""
    with servers.running(
        tmp_path_factory.mktemp("data"), database=_database(request), environ=HASTY
    ) as started:
        yield started


@pytest.fixture
def cluster() -> str:
    return next(_names)


@pytest.fixture
def column(server: Server, cluster: str) -> Column:
    """The column `len` of a new table with three texts, computed and not filled yet."""
    return make_column(server, cluster)


def _database(request: pytest.FixtureRequest) -> str:
    if request.param == "sqlite":
        return ""
    return new_postgres_database(request.getfixturevalue("postgres"))
