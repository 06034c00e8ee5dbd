"""What Spark takes for tasks that do nothing: no job on it can be faster."""

import statistics
import time
from pathlib import Path

from penstock.jobs.spark.tasks import Tasks
from penstock.runner.session import Session
from penstock.settings.sections import Cluster

# A JVM is as fast as it gets only after a while.
WARM_UP, ROUNDS = 40, 20


def spark_floor(folder: Path) -> float:
    """Seconds of an empty job of two tasks on a warm session of its own; the median."""
    session = Session("floor", Cluster(master="local[2]"), folder)
    try:
        engine = session.engine(lambda: None)
        found = []
        for _ in range(WARM_UP + ROUNDS):
            started = time.perf_counter()
            # Each task gets its number and gives it back.
            Tasks(engine, iter, 2, "id bigint").result()
            found.append(time.perf_counter() - started)
        return statistics.median(found[WARM_UP:])
    finally:
        session.stop()
