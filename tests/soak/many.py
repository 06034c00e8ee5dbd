"""Many histories in one process, some of them with a Spark session that they share."""

import tempfile
from collections.abc import Sequence
from pathlib import Path

from penstock.jobs.spark.tasks import Engine
from tests.soak.histories import Failed, Report, run_history

# Views that only Spark evaluates are in every so many-th history: they take longer.
SPARK_EVERY = 10


def run_many(
    seeds: Sequence[int], ingredients: Sequence[str], views: Sequence[str], spark: bool
) -> Report:
    """Go through histories, and on after one that fails."""
    whole = Report()
    for seed in seeds:
        with tempfile.TemporaryDirectory(prefix="penstock-soak-") as folder:
            engine = get_engine() if spark and seed % SPARK_EVERY == 0 else None
            try:
                whole.merge(run_history(Path(folder), seed, ingredients, engine, views))
            except Failed as error:
                whole.histories += 1
                whole.failures.append(str(error))
    return whole


_session: list[Engine] = []


def get_engine() -> Engine:
    """The Spark session of this process, started when it is needed first."""
    if not _session:
        import atexit

        from penstock.runner.session import Session
        from penstock.settings.sections import Cluster

        folder = tempfile.TemporaryDirectory(prefix="penstock-soak-spark-")
        session = Session("soak", Cluster(master="local[2,4]"), Path(folder.name))
        # Last in, first out.
        atexit.register(folder.cleanup)
        atexit.register(session.stop)
        _session.append(session.engine(lambda: None))
    return _session[0]
