"""A Spark session in an environment of its own, without anything of ours on its side."""

import contextlib
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from tests.engines.checks import Session
from tests.engines.process import line_session

WORKER = Path(__file__).with_name("worker.py")
CATALOG = "lake"
OURS = ("PYTHONPATH", "SPARK_HOME", "PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON")

# Small and quiet, and on the loopback only.
LOCAL = {
    "spark.master": "local[2]",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.memory": "1g",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.session.timeZone": "UTC",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1",
    "spark.sql.defaultCatalog": CATALOG,
}


@contextlib.contextmanager
def spark_session(
    python: Path, conf: Mapping[str, str], log: Path, environ: Mapping[str, str] | None = None
) -> Iterator[Session]:
    """Spark of that environment's PySpark, for the length of a block."""
    command = [str(python), str(WORKER), json.dumps({**LOCAL, **conf})]
    # What this process was started with is not for another Python.
    clean = {name: text for name, text in os.environ.items() if name not in OURS}
    with line_session(command, log, {**clean, **(environ or {})}) as session:
        yield session


def packaged(python: Path) -> Path:
    """Where that environment's PySpark lies."""
    [found] = (python.parents[1] / "lib").glob("python3.*/site-packages/pyspark")
    return found
