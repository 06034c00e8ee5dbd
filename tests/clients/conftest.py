"""What the tests with other people's clients share: one server, on SQLite."""

from collections.abc import Iterator

import pytest

from tests.harness.processes import servers


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[servers.Server]:
    """A running server; the databases have tests of their own."""
    with servers.running(tmp_path_factory.mktemp("data")) as started:
        yield started
