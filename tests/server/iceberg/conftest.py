"""What the tests of the Iceberg protocol share: a server per database, a client, a namespace."""

from collections.abc import Iterator

import pytest

from tests.harness.clients.iceberg import Iceberg, Namespace, View
from tests.harness.processes import servers
from tests.harness.processes.databases import KINDS, database_of
from tests.harness.processes.servers import Server


@pytest.fixture(scope="session", params=KINDS)
def server(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Server]:
    """A running server, on each kind of database in turn; each test has a namespace of its own."""
    data = tmp_path_factory.mktemp("data")
    with servers.running(data, database=database_of(request)) as started:
        yield started


@pytest.fixture(scope="session")
def iceberg(server: Server) -> Iceberg:
    """A client of that server."""
    return Iceberg(server)


@pytest.fixture
def ns(iceberg: Iceberg) -> Namespace:
    """A namespace of the test's own."""
    return iceberg.new_namespace()


@pytest.fixture
def view(ns: Namespace) -> View:
    """A view in it, with one version."""
    return ns.create_view()
