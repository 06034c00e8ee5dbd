"""What tests of runners share: a server whose leases are short, and warm runners for it."""

import contextlib
from collections.abc import Iterator

import pytest

from tests.harness.processes import servers
from tests.harness.processes.runners import RunnerProcess, Team

# Long enough for a busy machine, short enough to wait for.
LEASES = {
    "PENSTOCK__JOBS__LEASE_SECONDS": "5",
    "PENSTOCK__JOBS__MAX_ATTEMPTS": "6",
    "PENSTOCK__SERVER__SQL_SECONDS": "300",
}
# Two cores, and what a failed task of Spark needs.
SPARK = {"PENSTOCK__CLUSTERS": '{"local": {"master": "local[2,4]"}}'}
# A secret that nothing may tell, of two lines and with what texts quote, and one in a file.
CANARY, FILED = "canary-'7f3a\"9c\nsecond-line-5b1e", "canary-in-a-file-42d8"


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[servers.Server]:
    """A server that can be killed and started again at the same place."""
    data = tmp_path_factory.mktemp("data")
    port = str(servers.free_port())
    started = servers.start(data, "--no-runner", "--port", port, environ=LEASES)
    yield started
    with contextlib.suppress(ProcessLookupError):
        started.stop()


@pytest.fixture(scope="session")
def team(server: servers.Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Team]:
    """Runners that stay for the tests to come, unless a test kills them."""
    folder = tmp_path_factory.mktemp("secrets")
    (folder / "filed").write_text(f"{FILED}\n")
    secrets = {
        "PENSTOCK__SECRETS__VARIABLES": '{"planted": "PLANTED"}',
        "PENSTOCK__SECRETS__FOLDER": str(folder),
        "PLANTED": CANARY,
    }
    found = Team(server, tmp_path_factory.mktemp("runner"), SPARK | secrets)
    yield found
    found.stop()


@pytest.fixture
def runner(team: Team) -> RunnerProcess:
    """A warm runner; there may be others."""
    return team.at_least(1)[0]


@pytest.fixture
def pair(team: Team) -> list[RunnerProcess]:
    """Two warm runners."""
    return team.at_least(2)
