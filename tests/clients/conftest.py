"""What the tests with other people's clients share: one server, on SQLite."""

from collections.abc import Iterator

import pytest

from tests.harness.clients.pylance import Client, connect
from tests.harness.processes import servers
from tests.harness.processes.servers import Server


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A running server; the databases have tests of their own."""
    with servers.running(tmp_path_factory.mktemp("data")) as started:
        yield started


@pytest.fixture
def client(server: Server, namespace: str) -> Client:
    """A table that was created with the rows 1, 2 and 3."""
    client = Client(connect(server), [namespace, "t"])
    client.write(1, 2, 3, mode="create")
    return client
