"""What tests on Spark share: one session for the whole run, and one server without a runner."""

from collections.abc import Iterator

import pytest

from penstock.pipeline.spark.engine import Engine
from penstock.runner.session import Session
from penstock.settings.sections import Cluster
from tests.harness import servers


@pytest.fixture(scope="session")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    """A local Spark session that tries a failed task again."""
    session = Session("local", Cluster(master="local[2,4]"), tmp_path_factory.mktemp("spark"))
    yield session.engine(lambda: None)
    session.stop()


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[servers.Server]:
    """A running server; the databases have tests of their own."""
    with servers.running(tmp_path_factory.mktemp("data"), "--no-runner") as started:
        yield started
