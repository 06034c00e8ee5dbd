"""On a cluster of its own Spark ends what it cannot interrupt, with the executor."""

import time
from pathlib import Path

import pytest

from penstock.jobs.spark.tasks import Engine, SparkWork
from tests.harness.processes.waiting import until
from tests.jobs.conftest import MASTER

# `test_clusters.py` runs it there. A session of the other tests would not survive it.
pytestmark = pytest.mark.skipif(MASTER is None, reason="it is about executors")


def find_executors(application: str) -> set[Path]:
    """The processes of an application's executors, on this machine."""
    found = set()
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            line = (folder / "cmdline").read_bytes().decode(errors="replace")
        except OSError:
            continue
        if "CoarseGrainedExecutorBackend" in line and application in line:
            found.add(folder)
    return found


def test_a_regular_expression_is_over_ten_seconds_after_its_cancel(engine: Engine) -> None:
    frame = engine.spark.range(1).selectExpr("repeat('a', 40 + id) RLIKE '(.*a){20}c' AS x")
    before = find_executors(engine.spark.sparkContext.applicationId)
    assert before
    running = SparkWork(engine, frame.collect)
    until(running._has_tasks)
    time.sleep(2)
    start = time.monotonic()
    running.end()
    assert time.monotonic() - start < 10
    assert not running._has_tasks()
    assert not any(folder.exists() for folder in before)
    # The cluster goes on.
    assert engine.spark.range(5).count() == 5
