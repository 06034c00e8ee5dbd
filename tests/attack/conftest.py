"""One world for all attacks, on each kind of database; and how many attacks there are."""

import logging
from collections.abc import Iterator
from typing import Any

import pytest

from tests.attack.world import World, standing
from tests.harness.processes.access import issuing
from tests.harness.processes.databases import KINDS, database_of
from tests.harness.processes.s3 import running_store


@pytest.fixture(scope="package", params=KINDS)
def world(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("attacked")
    logging.getLogger("werkzeug").setLevel(logging.WARNING)
    with (
        running_store() as store,
        issuing() as issuer,
        standing(folder, database_of(request), store, issuer) as made,
    ):
        yield made


def pytest_terminal_summary(terminalreporter: Any) -> None:
    from tests.attack.registry import count

    found = count()
    by_family = ", ".join(f"{name} {number}" for name, number in found.items())
    terminalreporter.write_line(f"attacks: {sum(found.values())} ({by_family})")
