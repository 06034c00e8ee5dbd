"""What the tests of commands share: a server, and a table with a computed column."""

from collections.abc import Iterator

import pytest

import penstock
from tests.harness.data.tables import new_name
from tests.harness.processes.servers import Server, running


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with running(tmp_path_factory.mktemp("data")) as started:
        yield started


@pytest.fixture
def table(server: Server) -> Iterator[penstock.Table]:
    """Three documents with a computed column, in a namespace of their own."""
    with penstock.connect(server.url) as lake:
        space = new_name()
        lake.create_namespace(space)
        rows = {"id": [1, 2, 3], "text": ["a", "bb", "c" * 90]}
        yield lake.create_table(f"{space}.docs", rows).add_column("size", computed="length(text)")
