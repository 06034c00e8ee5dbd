"""What the tests of the protocol share."""

import pytest

from tests.harness import tables
from tests.harness.servers import Server


@pytest.fixture
def table(server: Server, namespace: str) -> tables.Table:
    """A declared table in a namespace of its own, with managed versions and none yet."""
    return tables.declare(server, f"{namespace}$t")
