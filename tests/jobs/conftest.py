"""What tests on Spark share: one session for the whole run, and one server without a runner."""

import os
from collections.abc import Iterator

import pytest

from penstock.jobs.spark.tasks import Engine
from penstock.runner.session import Session
from penstock.settings.sections import Cluster
from tests.harness.processes import servers

# How `spark/test_clusters.py` has the same tests run elsewhere.
MASTER, REMOTE = os.environ.get("PENSTOCK_TEST_MASTER"), os.environ.get("PENSTOCK_TEST_REMOTE")
EXECUTORS = {"spark.executor.extraJavaOptions": os.environ["SPARK_SUBMIT_OPTS"]}
CLUSTER = (
    Cluster(remote=REMOTE)
    if REMOTE
    else Cluster(master=MASTER or "local[2,4]", conf=EXECUTORS if MASTER else {})
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        # The first test waits for Spark, which starts slowly on a busy machine.
        if "engine" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.timeout(400))


@pytest.fixture(scope="session")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    """A Spark session that tries a failed task again."""
    session = Session("test", CLUSTER, tmp_path_factory.mktemp("spark"))
    yield session.engine(lambda: None)
    session.stop()


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[servers.Server]:
    """A running server; the databases have tests of their own."""
    with servers.running(tmp_path_factory.mktemp("data"), "--no-runner") as started:
        yield started
