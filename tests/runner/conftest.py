"""What tests of runners share: a server whose leases are short, and one warm runner for it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.harness import servers
from tests.harness.runners import RunnerProcess, running_runner

# Long enough for a busy machine, short enough to wait for.
LEASES = {"PENSTOCK__JOBS__LEASE_SECONDS": "5", "PENSTOCK__JOBS__MAX_ATTEMPTS": "5"}
# What a failed task of Spark needs, and two cores.
SPARK = {"PENSTOCK__CLUSTERS": '{"local": {"master": "local[2,4]"}}'}


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[servers.Server]:
    data = tmp_path_factory.mktemp("data")
    with servers.running(data, "--no-runner", environ=LEASES) as started:
        yield started


@pytest.fixture(scope="session")
def runner_data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("runner")


@pytest.fixture(scope="session")
def runner(server: servers.Server, runner_data: Path) -> Iterator[RunnerProcess]:
    """A runner that has survived whatever the tests before have done to it."""
    with running_runner(server.url, runner_data, environ=SPARK) as started:
        yield started
