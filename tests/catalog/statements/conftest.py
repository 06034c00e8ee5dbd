"""A server that no runner ever asks for work."""

from collections.abc import Iterator

import pytest

from tests.harness.processes import servers
from tests.harness.processes.servers import Server


@pytest.fixture(scope="module")
def lonely(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server of the module's own, because a runner counts as there for a while after it asked."""
    with servers.running(tmp_path_factory.mktemp("lonely")) as started:
        yield started
