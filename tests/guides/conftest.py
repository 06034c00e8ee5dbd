"""What the tests of pages and examples share: a server of each module, and a warm runner for it."""

import contextlib
from collections.abc import Iterator

import pytest

from tests.harness.processes import servers
from tests.harness.processes.runners import Team

SPARK = {"PENSTOCK__CLUSTERS": '{"local": {"master": "local[2,4]"}}'}


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[servers.Server]:
    port = servers.free_port()
    # Where lancedb's client looks for it.
    environ = {"PENSTOCK__SERVER__FLIGHT_PORT": str(port + 1)}
    data = tmp_path_factory.mktemp("data")
    started = servers.start(data, "--no-runner", "--port", str(port), environ=environ)
    yield started
    with contextlib.suppress(ProcessLookupError):
        started.stop()


@pytest.fixture(scope="session")
def team(server: servers.Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Team]:
    found = Team(server, tmp_path_factory.mktemp("runner"), SPARK)
    found.at_least(1)
    yield found
    found.stop()
