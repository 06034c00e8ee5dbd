"""What the tests of lancedb's remote client share: the client in both forms, and a table."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.harness.clients.lancedb_modes import ASYNC, SYNC, Lake, event_loop, some_rows
from tests.harness.data.tables import new_name
from tests.harness.processes.servers import Server


@pytest.fixture(scope="module", params=[SYNC, ASYNC])
def lake(server: Server, request: pytest.FixtureRequest) -> Iterator[Lake]:
    with event_loop() as runner:
        yield Lake(request.param, server.url, runner)


@pytest.fixture
def table(lake: Lake) -> Any:
    """A table with the rows 1, 2 and 3."""
    return lake.done(lake.database.create_table(new_name(), some_rows(1, 2, 3)))
