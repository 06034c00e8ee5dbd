"""What the tests of the SDK share: one server, and a lake with a namespace for each test."""

import itertools
import json
from collections.abc import Iterator

import pytest

import penstock
from tests.harness.data.tables import new_name
from tests.harness.jobs.fake_runner import CLUSTERS
from tests.harness.processes import servers
from tests.harness.processes.servers import Server

_names = itertools.cycle(CLUSTERS)


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A running server; what it has below the SDK is tested elsewhere, on both databases."""
    environ = {"PENSTOCK__CLUSTERS": json.dumps(CLUSTERS)}
    with servers.running(tmp_path_factory.mktemp("data"), environ=environ) as started:
        yield started


@pytest.fixture(scope="session")
def lake(server: Server) -> Iterator[penstock.Lake]:
    with penstock.connect(server.url) as found:
        yield found


@pytest.fixture
def cluster() -> str:
    """A cluster of the test's own, whose jobs only the test leases."""
    return next(_names)


@pytest.fixture
def space(lake: penstock.Lake) -> str:
    """A namespace of the test's own."""
    name = new_name()
    lake.create_namespace(name)
    return name


@pytest.fixture
def table(lake: penstock.Lake, space: str) -> penstock.Table:
    """Three documents."""
    return lake.create_table(f"{space}.docs", {"id": [1, 2, 3], "text": ["a", "bb", "ccc"]})
